#!/bin/sh
# Calls, as a program makes them: with a key, so that a lost answer costs nothing; and one that is cancelled.
. "$(dirname "$0")/lib.sh"

conversation=$(json POST /v1/conversations '{"title": "Calls"}' | id con)

echo "What can be called:"
api GET /v1/targets
echo

echo "A call, at most 20000 tokens and two minutes:"
body='{"target": "demo", "prompt": "Good evening.", "budget": {"tokens": 20000}, "timeout_s": 120}'
first=$(json POST "/v1/conversations/$conversation/calls" "$body" --header 'Idempotency-Key: evening-1')
echo "$first"

echo "The same again, as if the answer had been lost: it is the same call, and \"already\" says so."
second=$(json POST "/v1/conversations/$conversation/calls" "$body" --header 'Idempotency-Key: evening-1')
test "$(echo "$first" | id hcl)" = "$(echo "$second" | id hcl)"
case $second in *'"already":true'*) echo "the same call" ;; *) exit 1 ;; esac

echo "Something else under the same key is refused:"
json POST "/v1/conversations/$conversation/calls" '{"target": "demo", "prompt": "Something else."}' \
  --header 'Idempotency-Key: evening-1' || true
echo

echo "It ends once:"
call=$(echo "$first" | id hcl)
follow "/v1/stream?feed=conversation/$conversation&from=start" '"phase":"succeeded"' >/dev/null
api GET "/v1/calls/$call"
echo

echo "A slow one, cancelled:"
slow=$(json POST "/v1/conversations/$conversation/calls" '{"target": "demo", "prompt": "Be slow."}' | id hcl)
follow "/v1/stream?feed=conversation/$conversation&from=start" '"phase":"running"' >/dev/null
json POST "/v1/calls/$slow/cancel" '{"reason": "I have changed my mind"}'
echo
follow "/v1/stream?feed=conversation/$conversation&from=start" '"phase":"cancelled"' | tail -n 1
