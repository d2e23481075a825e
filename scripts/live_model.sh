# Sourced by the checks that use the real model of real-model.sh: starts it, puts a counting wire before it, ends both.
#
#   start_model [FOLDER]     serves; sets $server to its address, $model to its process. The model is kept in FOLDER, else it goes away
#   wire NAME [REQUESTS]     a way to the server that writes to $scratch/wire.log what passes; sets $address
#
# Sets $scratch, a folder that goes away in the end, and $here, the folder of the scripts.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
pids=()
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  rm -rf "$scratch"
}
trap finish EXIT

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

start_model() {
  local folder=${1:-$scratch/model} port
  port=$(free_port)
  bash "$here/real-model.sh" "$folder" "$port" 2>"$scratch/server.log" >&2 &
  model=$!
  pids+=("$model")
  python3 - "$port" "$model" <<'READY' || { tail -n 20 "$scratch/server.log" >&2; exit 1; }
import os, sys, time, urllib.request
port, pid = sys.argv[1:]
for _ in range(1200):  # installing is part of it
    os.kill(int(pid), 0)
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)
        break
    except OSError:
        time.sleep(0.5)
else:
    sys.exit("the model's server does not answer")
READY
  server=http://127.0.0.1:$port
}

wire() {
  mkfifo "$scratch/$1"
  python3 "$here/live_wire.py" "$server" "$scratch/wire.log" "${@:2}" >"$scratch/$1" &
  pids+=("$!")
  read -r address <"$scratch/$1"
}
