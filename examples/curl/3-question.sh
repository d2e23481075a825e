#!/bin/sh
# The agent asks something. Its run waits as a row in the store, and may wait for days; the server may be restarted.
. "$(dirname "$0")/lib.sh"

conversation=$(json POST /v1/conversations '{"title": "A question"}' | id con)
json POST "/v1/conversations/$conversation/messages" \
  '{"to": ["harness/demo"], "blocks": [{"type": "text", "text": "Please ask me something."}]}' >/dev/null

echo "The stream says when somebody is asked:"
follow "/v1/stream?feed=conversation/$conversation&from=start" '"type":"question"'

echo "What needs a person in this conversation:"
question=$(api GET "/v1/conversations/$conversation/questions" | id qst)
api GET "/v1/questions/$question"
echo

echo "An answer that does not fit is refused, and changes nothing:"
json POST "/v1/questions/$question/answer" '{"status": "answered", "value": "purple"}' || true
echo

echo "One that fits. It is sent to the run (\"answer\" says so), and counts once the run has taken it:"
json POST "/v1/questions/$question/answer" '{"status": "answered", "value": "green"}'
echo

echo "The run takes it, and the agent goes on:"
follow "/v1/stream?feed=conversation/$conversation&from=start" '"type":"message_ended"' | tail -n 1
api GET "/v1/questions/$question"
echo
