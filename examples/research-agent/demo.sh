#!/usr/bin/env bash
# The main job, offline: an agent researches a folder of documents with the scripted demo model. It is stopped, killed
# and resumed, recorded, replayed and compared, and what has to hold is checked by code.
#
#   bash demo.sh             everything happens in a fresh folder, which is removed again
#   bash demo.sh --keep      the folder is kept, and named at the end
#   bash demo.sh --fixture   recordings of the first and the third run replace those in testdata
#
# Exit code 0: everything held. Needs bash, coreutils and sed; cargo builds the two programs first.
set -euo pipefail

keep='' fixture=''
for option in "$@"; do
  case $option in
    --keep) keep=yes ;;
    --fixture) fixture=yes ;;
    *) echo "usage: demo.sh [--keep] [--fixture]" >&2; exit 2 ;;
  esac
done

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here"
echo "building loopctl and research-agent (the first time takes minutes)" >&2
cargo build --quiet --locked -p loopctl -p research-agent
target=$(cargo metadata --quiet --locked --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
loopctl=$target/debug/loopctl research=$target/debug/research-agent

work=$(mktemp -d) worker='' start=$SECONDS
export LOOPD_STORE=$work/store.db NO_COLOR=1
question='When does a run wait for a person, and what becomes of the calls that were open when its worker died?'
proved=()

leave() {
  if [ -n "$worker" ]; then kill -KILL "$worker" 2>/dev/null || true; fi
  if [ -n "$keep" ]; then echo "kept: $work" >&2; else rm -rf "$work"; fi
}
trap leave EXIT

step() { printf '\n%s\n' "$*"; }
say() { printf '   %s\n' "$*"; }
indent() { sed 's/^/   /'; }
proof() { proved+=("$*"); }
fail() { printf '\nFAILED: %s\n' "$*" >&2; exit 1; }

# begin WORD…: a worker in the background; what it says goes to a file.
begin() {
  "$loopctl" run "$@" --quiet >"$work/worker.out" 2>&1 &
  worker=$!
}

# ended CODE WHAT: waits for the worker, which has to end with this exit code.
ended() {
  local code=0
  wait "$worker" 2>/dev/null || code=$?
  worker=''
  [ "$code" -eq "$1" ] || fail "$2 ended with exit code $code, not $1: $(<"$work/worker.out")"
}

# pause SECONDS: a read from a pipe into which nobody writes. Unlike sleep it starts no process.
exec {silence}<> <(:)
pause() { read -r -t "$1" -u "$silence" || true; }

# is_open ITERATION CLASS: whether the newest run has an open call of this effect class in this iteration, as another
# process sees it beside the worker.
is_open() {
  seen=$("$loopctl" run why last -o jsonl 2>/dev/null) || seen=''
  [[ $seen == *"\"iteration\":$1,"* && $seen == *"\"state\":\"open\",\"class\":\"$2\""* ]]
}

# until_open ITERATION: waits until the model call of this iteration is open.
until_open() {
  until is_open "$1" billable; do
    kill -0 "$worker" 2>/dev/null || fail "the worker ended before the model call $1: $(<"$work/worker.out")"
    pause 0.02
  done
}

# freeze_tools: lets the worker run until one of its tool calls is open, and freezes it there. Tools take a few
# milliseconds, so it runs in short slices from the moment at which the step that wants them is being written. A stop
# takes effect a moment later, so what was seen is looked at again: then it holds until the worker is killed. False:
# they were faster each time.
freeze_tools() {
  local iteration
  for iteration in 2 3; do
    until_open "$iteration"
    : >"$work/mark"
    until [[ $LOOPD_STORE-wal -nt $work/mark ]]; do pause 0.0001; done
    while kill -STOP "$worker" 2>/dev/null; do
      if is_open "$iteration" read && is_open "$iteration" read; then return; fi
      kill -CONT "$worker"
      # Too late: the next model call is open.
      if [[ $seen == *"\"iteration\":$((iteration + 1)),"* ]]; then break; fi
      pause 0.0002
    done
  done
  return 1
}

# killed WHERE CLASS: kills the worker, and shows the open calls that the next one will find; one is of this class.
killed() {
  kill -KILL "$worker"
  ended 137 'the killed worker'
  say "kill -9 $1:"
  "$loopctl" run why last | sed -n 's/^  why */      /p; s/^  call */      /p' | sed 's/ · given up at.*//'
  seen=$("$loopctl" run why last -o jsonl)
  [[ $seen == *"\"state\":\"open\",\"class\":\"$2\""* ]] || fail "no call of class $2 was open when the worker died"
}

echo 'A research agent that cannot be lost. Offline: the model is a script, the documents are in library/.'

step '1. It runs, and its answer is checked.'
say "? $question"
say '$ loopctl run agent.yaml "…" >answer.json'
"$loopctl" run agent.yaml "$question" --quiet >"$work/answer.json"
sed -n 's/^  "answer": "\(.*\)",$/\1/p' "$work/answer.json" | fold -s -w 100 | indent
say '$ research-agent check-citations library answer.json'
"$research" check-citations library "$work/answer.json" | indent || fail 'a citation is not exact'
"$loopctl" record last -o "$work/run1.loopfix" 2>/dev/null
proof 'every citation is an exact span of a document'

step '2. A second run is stopped politely in the middle, and goes on.'
begin agent.yaml "$question"
until_open 2
kill -TERM "$worker"
ended 5 'the stopped worker'
"$loopctl" run why last | sed -n 's/^  why */   /p'
say '$ loopctl run resume last'
begin resume last
ended 0 'the resumed worker'
"$loopctl" record last -o "$work/run2.loopfix" 2>/dev/null
"$research" ran-again "$work/run2.loopfix" | indent || fail 'something ran again that may not'
[[ $("$research" ran-again "$work/run2.loopfix") == *' 0 ran again'* ]] || fail 'a polite stop made something run again'
proof 'a polite stop repeats nothing'

step '3. A third run is killed with -9 at three places, and resumed each time.'
for try in 1 2 3 4 5 too-many; do
  [ "$try" != too-many ] || fail 'the tools were always faster than the kill'
  begin agent.yaml "$question"
  until_open 1
  killed 'during the first model call' billable
  begin resume last
  if freeze_tools; then break; fi
  ended 0 'the resumed worker'
  say 'Its tools were faster than the kill; another run.'
done
killed 'while its tools run' read
begin resume last
until_open 4
pause 0.8
killed 'in the last step, while the model writes its answer' billable
begin resume last
ended 0 'the resumed worker'
[[ $(<"$work/worker.out") == "$(<"$work/answer.json")" ]] || fail 'the answer is another one than that of the first run'
say 'It completes with the same answer. What ran again:'
say '$ loopctl record last -o run3.loopfix; research-agent ran-again run3.loopfix'
"$loopctl" record last -o "$work/run3.loopfix" 2>/dev/null
"$research" ran-again "$work/run3.loopfix" | indent || fail 'something ran again that may not'
proof 'a run that was killed three times completes with the same answer'
proof 'only reads and model calls were repeated, the latter charged, and no call whose result was recorded'

step '4. The store is verified, and the runs are recorded.'
say '$ loopctl store verify'
"$loopctl" store verify | indent
for file in run1 run2 run3; do say "$file.loopfix: $(wc -c <"$work/$file.loopfix") bytes"; done
proof 'the hash chain of every run is whole'

step '5. The recordings are replayed: no key, no network, an empty environment.'
say '$ env -i loopctl replay --strict run1.loopfix run2.loopfix run3.loopfix'
(cd "$work" && env -i "$loopctl" replay --strict run1.loopfix run2.loopfix run3.loopfix) | indent
proof 'today'"'"'s agent decides from the recorded facts as it did then'

step '6. A copy with one changed byte is caught.'
# The result of read_file for effects.md. Line 1 is the header, so entry N stands in line N + 1.
line=$(sed -n '/"kind":"settled".*never runs it again/{=;q}' "$work/run1.loopfix")
sed "${line}s/never/newer/" "$work/run1.loopfix" >"$work/tampered.loopfix"
say "\$ sed '${line}s/never/newer/' run1.loopfix >tampered.loopfix"
code=0
(cd "$work" && "$loopctl" verify tampered.loopfix) >"$work/verify.out" 2>&1 || code=$?
sed -n 1p "$work/verify.out" | indent
[ "$code" -eq 7 ] || fail "the tampered copy was verified with exit code $code"
[[ $(<"$work/verify.out") == *"entry $((line - 1)) "* ]] || fail "the changed entry $((line - 1)) was not named"
proof "a changed byte is found, and its entry is named ($((line - 1)))"

step '7. The run that was killed three times made the same calls as the one that was not.'
say '$ loopctl diff run1.loopfix run3.loopfix'
(cd "$work" && "$loopctl" diff --exit-code run1.loopfix run3.loopfix) | indent || fail 'the runs differ'
proof 'crashes leave no trace in what was done, only in what it cost'

if [ -n "$fixture" ]; then
  cp "$work/run1.loopfix" testdata/research.loopfix
  cp "$work/run3.loopfix" testdata/killed.loopfix
fi
step "Proved in $((SECONDS - start)) s:"
for what in "${proved[@]}"; do say "✓ $what"; done
