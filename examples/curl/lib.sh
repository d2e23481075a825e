# What every script here uses. It is read by them, not run.
set -eu

# A running server says in its folder where it is.
SERVER=${SERVER:-$(sed 's/.*"address":"\([^"]*\)".*/\1/' ./.loopd/server.json)}
TOKEN=$(cat "${TOKEN_FILE:-./.loopd/admin.token}")

# api METHOD PATH [CURL-OPTIONS]: one request. --fail-with-body prints a refusal and stops the script.
api() {
  method=$1 path=$2
  shift 2
  curl --silent --show-error --fail-with-body --request "$method" "$SERVER$path" \
    --header "Authorization: Bearer $TOKEN" "$@"
}

# json METHOD PATH BODY [CURL-OPTIONS]: the same with a JSON body.
json() {
  method=$1 path=$2 body=$3
  shift 3
  api "$method" "$path" --header 'Content-Type: application/json' --data "$body" "$@"
}

# id PREFIX: the first id of this kind in what comes in. A program would parse the JSON; here grep has to do.
id() {
  grep -o "$1_[0-9a-f]\{32\}" | head -n 1
}

# follow PATH TEXT [CURL-OPTIONS]: prints a stream up to the first line with TEXT, and then closes it.
follow() {
  path=$1 text=$2
  shift 2
  pipe=$(mktemp -u)
  mkfifo "$pipe"
  curl --silent --no-buffer --max-time 60 "$SERVER$path" --header "Authorization: Bearer $TOKEN" "$@" >"$pipe" &
  curl=$!
  found=no
  while IFS= read -r line; do
    printf '%s\n' "$line"
    case $line in *"$text"*) found=yes && break ;; esac
  done <"$pipe"
  kill "$curl" 2>/dev/null || true
  wait "$curl" 2>/dev/null || true
  rm "$pipe"
  test "$found" = yes
}
