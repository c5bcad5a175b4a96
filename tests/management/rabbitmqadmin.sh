#!/usr/bin/env bash
# Tries every command of rabbitmqadmin v2 against the broker whose HTTP API is at HTTP_URL and whose user is guest.
# The tool is RABBITMQADMIN, or installed once from crates.io, outside the sources: in MANAGEMENT_DIR, or
# target/management. What is known not to work is listed with the reason in docs/rabbitmqadmin.md, and here must fail.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${HTTP_URL:?is not set; for example http://127.0.0.1:15672}"
dir=${MANAGEMENT_DIR:-$here/../../target/management}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
tool=${RABBITMQADMIN:-$dir/bin/rabbitmqadmin}
if [[ ! -x $tool ]]; then
    cargo install rabbitmqadmin --version 2.35.0 --root "$dir" || exit 1
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
port=${HTTP_URL##*:}
port=${port%/}

passed=0 failed=0
admin() { "$tool" --non-interactive --base-uri "$HTTP_URL" --username guest --password guest "$@"; }
# Runs a command that must work.
works() {
    if admin "$@" >"$scratch/out" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $*"
        sed 's/^/     /' "$scratch/out" | head -n 20
    fi
}
# Runs a command that must work and whose output holds a text.
tells() {
    local text=$1
    shift
    works "$@"
    if ! grep -qF -- "$text" "$scratch/out"; then
        failed=$((failed + 1))
        echo "FAIL $* does not tell '$text'"
        sed 's/^/     /' "$scratch/out" | head -n 20
    fi
}
# Runs a command that must be refused: see docs/rabbitmqadmin.md.
refused() {
    if admin "$@" >"$scratch/out" 2>&1; then
        failed=$((failed + 1))
        echo "FAIL $* works, although it is said not to"
    else
        passed=$((passed + 1))
    fi
}

tells "DeepMQ" show overview
works show churn
works show endpoint
node=$(admin --quiet list nodes 2>/dev/null | grep -oE '[a-z0-9_-]+@[A-Za-z0-9._-]+' | head -n 1)
works nodes list
works nodes memory_breakdown_in_bytes --node "$node"
works nodes memory_breakdown_in_percent --node "$node"
works show memory_breakdown_in_bytes --node "$node"
works show memory_breakdown_in_percent --node "$node"
works auth_attempts stats --node "$node"
works plugins list_all
works plugins list_on_node --node "$node"

# Vhosts and who may enter them
works vhosts declare --name admin-eu --description Europe --default-queue-type quorum
tells admin-eu vhosts list
works vhosts enable_deletion_protection --name admin-eu
refused vhosts delete --name admin-eu
works vhosts disable_deletion_protection --name admin-eu
works declare user --name ann --password secret --tags management
hash=$(admin --quiet passwords salt_and_hash secret 2>/dev/null | grep -oE '[A-Za-z0-9+/]{40,}={0,2}' | head -n 1)
works declare user --name bob --password-hash "$hash" --tags monitoring
works declare user --name eve --password secret --hashing-algorithm SHA512 --tags monitoring
tells ann users list
works declare permissions --user ann --configure '.*' --write '.*' --read '.*' --vhost admin-eu
tells ann permissions list
works users permissions
works users connections --username ann
works users limits
works vhost_limits declare --name max-queues --value 100 --vhost admin-eu
tells max-queues vhost_limits list --vhost admin-eu
works list vhost_limits
works user_limits declare --user ann --name max-connections --value 10
tells max-connections user_limits list
works declare vhost_limit --name max-connections --value 100 --vhost admin-eu
works declare user_limit --user ann --name max-channels --value 10
works list user_limits
works delete user_limit --user ann --name max-channels
works user_limits delete --user ann --name max-connections
works delete vhost_limit --name max-connections --vhost admin-eu
works vhost_limits delete --name max-queues --vhost admin-eu

# Topology and messages
works queues declare --name orders --type classic --durable true --arguments '{"x-max-length": 100}'
works declare queue --name spare --type quorum
tells orders queues list
tells orders list queues
tells orders queues show --name orders
works exchanges declare --name shop --type topic --durable true
works declare exchange --name shop2 --type fanout
tells shop exchanges list
works list exchanges
works bindings declare --source shop --destination-type queue --destination orders --routing-key 'order.#'
works exchanges bind --source shop --destination-type exchange --destination shop2 --routing-key 'order.*'
works declare binding --source shop2 --destination-type queue --destination spare --routing-key ''
tells 'order.#' bindings list
works list bindings
works publish message --exchange shop --routing-key order.new --payload hello --properties '{"delivery_mode": 2}'
tells hello get messages --queue orders --count 5 --ack-mode ack_requeue_true
works purge queue --name orders
works queues purge --name orders
works exchanges unbind --source shop --destination-type exchange --destination shop2 --routing-key 'order.*'
works bindings delete --source shop --destination-type queue --destination orders --routing-key 'order.#'
works delete binding --source shop2 --destination-type queue --destination spare --routing-key ''
works list consumers
works list channels
works channels list
works connections list
works connections list_of_user --username guest
works list connections
works list user_connections --username guest
works close user_connections --username ann --idempotently
works connections close_of_user --username ann --idempotently
refused close connection --name nobody
works close connection --name nobody --idempotently
works connections close --name nobody --idempotently
works queues rebalance
works rebalance queues
works queues delete --name orders
works queues declare --name many-1
works queues declare --name many-2
works queues delete_multiple --name-pattern '^many' --approve
works delete queue --name spare
works exchanges delete --name shop
works delete exchange --name shop2

# Policies and parameters
works policies declare --name short --pattern '^o' --apply-to queues --priority 1 --definition '{"max-length": 5}'
works declare policy --name long --pattern '^l' --apply-to all --definition '{"max-length": 500}'
tells short policies list
works list policies
works policies list_in --vhost /
works policies list_matching_object --name orders --type queues
works policies list_conflicting
works policies list_conflicting_in
works policies patch --name short --definition '{"message-ttl": 1000}'
works policies update_definition --name short --definition-key max-length --new-value 6
works policies update_definitions_of_all --definition-key max-length --new-value 7
works policies update_definitions_of_all_in --definition-key max-length --new-value 8
works policies delete_definition_keys --name short --definition-keys message-ttl
works policies declare_override --name short --definition '{"max-length": 1}'
works policies declare_blanket --name blanket --apply-to queues --definition '{"max-length": 9}'
works policies delete_definition_keys_from_all_in --definition-keys message-ttl
works policies delete_definition_keys_from_all --definition-keys message-ttl
for name in short overrides.short blanket; do works policies delete --name "$name" --idempotently; done
works delete policy --name long
works operator_policies declare --name cap --pattern '.*' --apply-to queues --definition '{"max-length": 1000}'
works declare operator_policy --name cap2 --pattern '.*' --apply-to queues --definition '{"max-length": 1000}'
tells cap operator_policies list
works list operator_policies
works operator_policies list_in --vhost /
works operator_policies list_matching_object --name orders --type queues
works operator_policies patch --name cap --definition '{"expires": 100000}'
works operator_policies update_definition --name cap --definition-key max-length --new-value 6
works operator_policies update_definitions_of_all_in --definition-key max-length --new-value 7
works operator_policies delete_definition_keys --name cap --definition-keys expires
works operator_policies delete_definition_keys_from_all_in --definition-keys expires
works operator_policies delete --name cap
works delete operator_policy --name cap2
works parameters set --component federation-upstream --name up --value '{"uri": "amqp://x"}'
tells up parameters list_all
works parameters list --component federation-upstream
works parameters list_in --component federation-upstream --vhost /
works list parameters
works declare parameter --component federation-upstream --name up2 --value '{"uri": "amqp://x"}'
works delete parameter --component federation-upstream --name up2
works parameters clear --component federation-upstream --name up
works global_parameters set --name cluster_tags --value '{"region": "eu"}'
tells cluster_tags global_parameters list
works global_parameters clear --name cluster_tags

# Definitions
works definitions export --file "$scratch/all.json"
works definitions import --file "$scratch/all.json"
works export definitions --file "$scratch/all2.json"
works import definitions --file "$scratch/all2.json"
works definitions export_from_vhost --file "$scratch/vhost.json"
works definitions import_into_vhost --file "$scratch/vhost.json" --vhost admin-eu

# Health and features
works health_check local_alarms
works health_check cluster_wide_alarms
works health_check node_is_quorum_critical
refused health_check deprecated_features_in_use
works health_check port_listener --port "$port"
refused health_check port_listener --port 1
works health_check protocol_listener --protocol amqp
works feature_flags list
works list feature_flags
works feature_flags enable_all
refused feature_flags enable --name no_such_flag
works deprecated_features list
works deprecated_features list_used
works list deprecated_features
works list deprecated_features_in_use

# Federation's parameters are kept; nothing follows from them
works federation declare_upstream --name fed --uri amqp://remote --queue-name q --exchange-name x
works federation list_all_upstreams
works federation delete_upstream --name fed
refused federation list_all_links
refused shovels list_all
refused streams declare --name s --expiration 1h
works streams list
refused tanzu sds status_on_node --node "$node"

works permissions delete --user ann --vhost admin-eu
works delete user --name ann
works users delete --name bob
works users delete --name eve
works vhosts delete --name admin-eu
works vhosts declare --name multi-1
works vhosts delete_multiple --name-pattern '^multi' --approve
works shell completions --shell bash

echo "$passed passed, $failed failed"
((failed == 0))
