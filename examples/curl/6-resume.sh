#!/bin/sh
# A stream breaks off in the middle and goes on behind the last event: nothing is missed, nothing comes twice.
. "$(dirname "$0")/lib.sh"

conversation=$(json POST /v1/conversations '{"title": "A stream"}' | id con)
feed="/v1/stream?feed=conversation/$conversation"
for word in one two three four; do
  json POST "/v1/conversations/$conversation/messages" '{"blocks": [{"type": "text", "text": "'$word'"}]}' >/dev/null
done

echo "The first part, up to the second message; then the connection is gone:"
part=$(follow "$feed&from=start" '"text":"two"')
echo "$part"
last=$(echo "$part" | sed -n 's/^id: //p' | tail -n 1)

# Last-Event-ID is the id of the last event that was handled. Browsers send it by themselves.
echo "The rest, behind $last:"
rest=$(follow "$feed" '"text":"four"' --header "Last-Event-ID: $last")
echo "$rest"

case $rest in *'"text":"two"'*) exit 1 ;; esac
case $rest in *'"text":"three"'*) echo "nothing was missed, nothing came twice" ;; *) exit 1 ;; esac
