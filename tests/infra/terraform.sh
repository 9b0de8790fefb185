# Sourced in the project's folder, with $work, a folder that is made anew, and a function `skip REASON` that ends the script.
# Finds terraform (TERRAFORM, else PATH) and a filesystem mirror of providers (TF_PLUGINS, else the usual places) with the
# AWS provider of terraform.lock.hcl; sets $terraform, and the environment for it.

terraform=${TERRAFORM:-$(command -v terraform || true)}
[ -n "$terraform" ] || skip "no terraform; install 1.9 or newer, or set TERRAFORM"
for plugins in "${TF_PLUGINS:-}" .tools/tf-plugins /opt/tf-plugins /usr/local/share/terraform/plugins /usr/share/terraform/plugins "$HOME/.terraform.d/plugins"; do
    [ -n "$plugins" ] && [ -d "$plugins/registry.terraform.io/hashicorp/aws" ] && break
    plugins=
done
[ -n "$plugins" ] || skip "no mirror with the AWS provider; set TF_PLUGINS to one"

rm -rf "$work"
mkdir -p "$work"
# A configuration of its own: no registry, no account, no proxy of the caller's.
cat > "$work/cli.tfrc" <<EOF
provider_installation {
  filesystem_mirror {
    path = "$(cd "$plugins" && pwd)"
  }
}
EOF
export TF_CLI_CONFIG_FILE="$work/cli.tfrc" TF_IN_AUTOMATION=1 CHECKPOINT_DISABLE=1 AWS_MAX_ATTEMPTS=3
unset TF_PLUGIN_CACHE_DIR TF_DATA_DIR TF_CLI_ARGS TF_LOG AWS_PROFILE
