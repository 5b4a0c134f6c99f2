#!/bin/sh
# curl and openssl: creates a task, then answers its callback. URL USER REF; the secret in API_SECRET.
set -eu
url=$1 user=$2 ref=$3

send() {
  time=$(date +%s)
  signature=$(printf '%s%s%s%s' "$time" "$API_SECRET" "$1" "$API_SECRET" |
    openssl dgst -sha1 -hex | sed 's/^.* //')
  # --data makes it application/x-www-form-urlencoded, as such scripts do.
  curl --silent --show-error --fail --data-binary "$1" \
    "$url/api/1/json/$user/$time/$signature"
  echo
}

send '{"ops":[{"ref":"'"$ref"'","type":"create","obj":"task","conv_id":"1234","data":{"name":"Київ","amount":10.0}}]}'
send '{"ops":[{"ref":"'"$ref"'","type":"modify","obj":"task","conv_id":"1234","data":{"paid":true}}]}'
