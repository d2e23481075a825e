#!/bin/sh
# A conversation, a message to the demo agent, and the stream of what happens until the answer is whole.
. "$(dirname "$0")/lib.sh"

echo "A new conversation:"
conversation=$(json POST /v1/conversations '{"title": "By hand"}' | id con)
echo "$conversation"

# A message to a harness calls it. The Idempotency-Key makes it safe to send the request again after a lost answer:
# the message is said once.
echo "A message to the demo agent:"
json POST "/v1/conversations/$conversation/messages" \
  '{"to": ["harness/demo"], "blocks": [{"type": "text", "text": "Good morning."}]}' \
  --header 'Idempotency-Key: good-morning-1'
echo

# Every event has an id, a position in its feed and a type; `delta` has none of them: it is text as it arrives, for
# watching only. What counts is `message_updated` (a part is durable) and `message_ended` (all of it is).
echo "What happens, from the start:"
follow "/v1/stream?feed=conversation/$conversation&from=start" '"type":"message_ended"'

echo "And what was said, whole:"
api GET "/v1/conversations/$conversation/messages"
echo
