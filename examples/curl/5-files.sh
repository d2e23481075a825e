#!/bin/sh
# A file goes into a conversation, is part of a message, and is read again.
. "$(dirname "$0")/lib.sh"

conversation=$(json POST /v1/conversations '{"title": "A file"}' | id con)
folder=$(mktemp -d)
printf 'tea: 2\ncoffee: 3\n' >"$folder/order.txt"

echo "Up, as it is; the media type is whatever you say it is, and nobody is made to believe it:"
artifact=$(api POST "/v1/conversations/$conversation/artifacts?name=order.txt" \
  --header 'Content-Type: text/plain' --data-binary @"$folder/order.txt")
echo "$artifact"
file=$(echo "$artifact" | id art)

echo "In a message:"
json POST "/v1/conversations/$conversation/messages" '{"blocks": [
    {"type": "text", "text": "Our order."},
    {"type": "artifact", "artifact": "'"$file"'", "name": "order.txt", "media_type": "text/plain", "bytes": 17}
  ]}'
echo

echo "Down again, byte for byte:"
api GET "/v1/artifacts/$file" --output "$folder/again.txt"
cmp "$folder/order.txt" "$folder/again.txt"
cat "$folder/again.txt"
rm -r "$folder"
