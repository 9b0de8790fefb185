locals {
  account   = data.aws_caller_identity.current.account_id
  partition = data.aws_partition.current.partition
  # The attribute that both major versions of the provider have.
  region = data.aws_region.current.id

  # ARNs are made from names, so that a plan shows every policy in full before anything exists.
  table_name = "${var.name}-ledger"
  table_arn  = "arn:${local.partition}:dynamodb:${local.region}:${local.account}:table/${local.table_name}"
  topic_arn  = "arn:${local.partition}:sns:${local.region}:${local.account}:${var.name}-alerts"
  queue_arn  = "arn:${local.partition}:sqs:${local.region}:${local.account}:${var.name}-failed-events"

  function_names = { for key in keys(local.functions) : key => "${var.name}-${key}" }
  own_log_groups = [for name in values(local.function_names) : "/aws/lambda/${name}"]

  # Which log group wakes which pool: the pools are its one source.
  wake_log_groups    = toset(flatten([for pool in values(var.pools) : try([for group in pool.log_groups : group], [])]))
  counted_log_groups = toset(flatten([for pool in values(var.pools) : try([for log in pool.logs : log.group], [])]))
  other_types        = sort(distinct(flatten([for pool in values(var.pools) : try([for kind in pool.instance_types : kind], [])])))
  reads_ready_metric = anytrue([for pool in values(var.pools) : can(pool.ready.metric)])
  # Without a word of its own a pool is ready by its beats where it has them, else by EC2's checks (docs/configuration.md).
  reads_checks = anytrue([for pool in values(var.pools) : try(pool.ready == null, true) ? !try(tobool(pool.beat), false) : try(pool.ready == "checks", false)])
  reads_metrics = local.reads_ready_metric || anytrue(flatten([for pool in values(var.pools) : [
    can(pool.requests[0]), can(pool.open[0]), try([for log in pool.logs : can(log.alive.metric)], []),
  ]]))
}

# What the single variables cannot say: every fault at once, with what to write.
module "rules" {
  source          = "./rules"
  pools           = var.pools
  default_pool    = var.default_pool
  access          = var.access
  token_sha256    = var.token_sha256
  budget          = var.budget
  prices          = var.prices
  region          = local.region
  minutes         = { tick = var.tick_minutes, idle = var.idle_minutes, prewarm = var.prewarm_minutes, ready = var.ready_minutes }
  boot_seconds    = var.boot_seconds
  own_log_groups  = local.own_log_groups
  node_log_groups = var.node_log_groups
}

resource "terraform_data" "settings" {
  lifecycle {
    precondition {
      condition     = length(module.rules.faults) == 0
      error_message = join("\n", module.rules.faults)
    }
    precondition {
      condition     = local.environment_bytes <= 4096
      error_message = "The settings are larger than the 4096 bytes of a function's environment: write fewer pools, signals or windows in one controller, or make a second one."
    }
  }
}
