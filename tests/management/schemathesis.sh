#!/usr/bin/env bash
# Asks the broker at HTTP_URL (user guest) whatever its own description allows, and some more: no answer may be a 5xx, and none
# may break its description. Takes SECONDS_MAX seconds (60) at most. The tool is installed once, outside
# the sources: in MANAGEMENT_DIR, or target/management.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${HTTP_URL:?is not set; for example http://127.0.0.1:15672}"
dir=${MANAGEMENT_DIR:-$here/../../target/management}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
if ! cmp -s "$here/requirements.txt" "$dir/venv/requirements.txt"; then
    rm -rf "$dir/venv"
    python3 -m venv "$dir/venv"
    "$dir/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$dir/venv/"
fi

ask() { curl --silent --fail --output "$dir/answer" --user guest:guest --request "$@"; }
# A vhost to be asked in, so that the one clients use stays as it is.
ask PUT "$HTTP_URL/api/vhosts/fuzz" --data '{}'
ask PUT "$HTTP_URL/api/queues/fuzz/fuzz-queue" --data '{}'
ask PUT "$HTTP_URL/api/exchanges/fuzz/fuzz-exchange" --data '{"type": "topic"}'

# Left out is what would take away the ground: who asks, its permissions, its vhosts. And checks of listeners that there are
# not, which are meant to answer 503.
checks=not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance
left_out='^/api/((permissions|topic-permissions|users|vhosts|health/checks/(port|protocol)-listener)/'
left_out+='|(definitions|all-configuration)$)'
code=0
cd "$dir" # it leaves files where it runs
"$dir/venv/bin/schemathesis" --config-file "$here/schemathesis.toml" run "$HTTP_URL/api/openapi.json" \
    --auth guest:guest --checks "$checks" --phases examples,coverage,fuzzing --max-examples "${EXAMPLES:-30}" \
    --max-time "${SECONDS_MAX:-60}" --workers 2 --generation-database none --seed "${SEED:-1}" --suppress-health-check all \
    --exclude-path-regex "$left_out" \
    --exclude-path '/api/connections/username/{user}' || code=$?
ask DELETE "$HTTP_URL/api/vhosts/fuzz"
exit "$code"
