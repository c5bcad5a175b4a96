#!/usr/bin/env bash
# Runs the checks of every client library against the broker at AMQP_URL and sums them up.
# The libraries are installed once, outside the sources: in CLIENTS_DIR, or target/clients.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${CLIENTS_DIR:-$here/../../target/clients}
: "${AMQP_URL:?is not set; for example amqp://guest:guest@127.0.0.1:5672/%2f}"
export AMQP_URL

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
if ! cmp -s "$here/requirements.txt" "$dir/venv/requirements.txt"; then
    rm -rf "$dir/venv"
    python3 -m venv "$dir/venv"
    "$dir/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$dir/venv/"
fi
if ! cmp -s "$here/package.json" "$dir/node/package.json"; then
    rm -rf "$dir/node"
    mkdir "$dir/node"
    cp "$here/package.json" "$dir/node/"
    npm install --prefix "$dir/node" --silent --no-audit --no-fund --no-package-lock
fi
cp "$here"/*.mjs "$dir/node/" # an import looks for node_modules beside its file

passed=0 failed=0
# Runs one program, passes its report on and adds its last line, "N passed, M failed", to the sums.
program() {
    local name=$1 last
    shift
    echo "== $name"
    timeout 300 "$@" 2>&1 | tee "$dir/$name.report" || true
    last=$(tail -n 1 "$dir/$name.report")
    if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
    else
        echo "FAIL $name: it did not reach its end"
        failed=$((failed + 1))
    fi
}

for file in "$here"/*_checks.py; do
    program "$(basename "$file" _checks.py)" env PYTHONDONTWRITEBYTECODE=1 "$dir/venv/bin/python" "$file"
done
program amqplib node "$dir/node/amqplib_checks.mjs"

echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
