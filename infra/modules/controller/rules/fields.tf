# Generated from shared/src/config.rs: `make reference`.
locals {
  pool_fields   = ["requests", "open", "logs", "log_groups", "wake", "calls", "instance_types", "beat", "ready", "ready_beats", "calls_per_node", "fill_percent", "warm"]
  filter_fields = ["paths", "methods", "statuses", "ignore_agents", "long_call_seconds", "format", "fields"]
  signal_fields = ["namespace", "metric", "dimensions", "alive"]
  log_fields    = ["group", "lines", "alive"]
  window_fields = ["days", "from", "to", "nodes", "zone"]
  budget_fields = ["amount", "currency", "name", "actual", "forecast", "enforce", "mail", "units"]
  price_regions = ["ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1", "ap-southeast-2", "ca-central-1", "eu-central-1", "eu-north-1", "eu-west-1", "eu-west-2", "sa-east-1", "us-east-1", "us-east-2", "us-west-2"]
}
