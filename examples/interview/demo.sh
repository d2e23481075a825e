#!/usr/bin/env bash
# The interview through loopctl. The process of the Operator is killed before each answer, and the server once: every
# question comes once, and every answer counts.
#
#   bash demo.sh    everything happens in a fresh folder, which is removed again; the last line is the tally
#
# Exit code 0: everything held. Needs bash, coreutils, grep and sed; cargo builds the three programs first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

echo "building loopd, loopctl and interview (the first time takes minutes)" >&2
cargo build --quiet --locked -p loopd -p loopctl -p interview
target=$(cargo metadata --quiet --locked --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
loopd=$target/debug/loopd loopctl=$target/debug/loopctl interview=$target/debug/interview

work=$(mktemp -d) server='' operator='' kills=0 questions=0
export LOOPD_DATA=$work LOOPD_STORE=$work/store.db NO_COLOR=1
unset LOOPD_SERVER LOOPD_TOKEN

power_cut() { # PID: kills it, and waits until it is gone
  if [ -n "$1" ]; then
    kill -KILL "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
  fi
}
leave() {
  power_cut "$operator"
  power_cut "$server"
  rm -rf "$work"
}
trap leave EXIT

fail() {
  echo "interview: $*" >&2
  "$loopctl" conv show last --all >&2 || true
  head -n 5 "$work"/*.log >&2 || true
  exit 1
}

until_it() { # WHAT COMMAND…: waits until the command succeeds
  local what=$1 end=$((SECONDS + 60))
  shift
  until "$@" >/dev/null 2>&1; do
    if [ "$SECONDS" -ge "$end" ]; then fail "$what did not come"; fi
    sleep 0.1
  done
}

start_server() { # ADDRESS
  "$loopd" serve --addr "$1" >>"$work/loopd.log" 2>&1 &
  server=$!
  until_it "the server" "$loopctl" actor show
}

start_operator() {
  LOOPD_SERVER=http://$address LOOPD_TOKEN=$token "$interview" >>"$work/interview.log" 2>&1 &
  operator=$!
}

is_asked() { "$loopctl" ask list -o json | grep -q "$1"; }

answer() { # WHAT-IS-ASKED ANSWER…: kills the Operator once it has asked, and answers
  local asked=$1
  shift
  until_it "the question \"$asked\"" is_asked "$asked"
  questions=$((questions + 1)) kills=$((kills + 1))
  power_cut "$operator"
  "$loopctl" ask answer last "$@" >/dev/null
  start_operator
}

start_server 127.0.0.1:0
address=$(sed 's/.*"address":"http:\/\/\([^"]*\)".*/\1/' "$work/server.json")
token=$("$loopctl" token create --actor operator/interview --role operator)
start_operator
until_it "the operator" "$loopctl" actor show operator/interview

"$loopctl" conv new Interview >/dev/null
ended=0
told=$("$loopctl" conv send last "Hello" --to operator/interview --wait --timeout 60s 2>&1) || ended=$?
if [ "$ended" -ne 5 ] || ! grep -q "answer with" <<<"$told"; then fail "who waited was not told of the question ($ended): $told"; fi
answer "What is your name" Ann
until_it "the question of the language" is_asked "Which language"
power_cut "$server"
kills=$((kills + 1))
start_server "$address"
answer "Which language" Rust
answer "how many years" '{"years": 12}' --json
answer "Is this right" yes

is_noted() { "$loopctl" conv show last --all | grep -q "This is noted"; }
until_it "the end" is_noted
said=$("$loopctl" conv show last --all)
echo "$said"
for once in "What is your name?" "Which language do you write most?" "For how many years?" "This is noted"; do
  times=$(grep -o "$once" <<<"$said" | wc -l)
  if [ "$times" -ne 1 ]; then fail "\"$once\" was said $times times"; fi
done
for answer in "name: Ann" "language: Rust" "years: 12"; do
  grep -q "$answer" <<<"$said" || fail "\"$answer\" is not noted"
done
echo "interview kills=$kills questions=$questions doubled=0 lost=0"
