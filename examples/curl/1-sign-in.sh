#!/bin/sh
# A program signs in with a token: `loopd serve` makes one for the owner of the machine and keeps it in its folder.
# (Browsers sign in with the address that the server prints, once, and keep a cookie.)
. "$(dirname "$0")/lib.sh"

echo "Who am I, and what may I do?"
api GET /v1/whoami
echo

echo "Who can be addressed?"
api GET /v1/actors
echo

echo "Without a token nothing is said; the refusal has a stable code:"
curl --silent "$SERVER/v1/whoami"
echo
