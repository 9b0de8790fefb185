# The controller for nodes that are already there. It tags them, and leaves everything else of them alone.

terraform {
  required_version = ">= 1.9"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.80, < 7.0"
    }
  }
}

provider "aws" {
  region = var.region
  # Not the usual 25: where a limit is reached, such as two subscriptions to a log group, the provider repeats the call at growing
  # intervals as if it would pass, and for so long nobody is told.
  max_retries = 5
}

locals {
  pool = "gpu"
}

# What the rights, the pool and the budget go by. `destroy` takes it off again.
resource "aws_ec2_tag" "pool" {
  for_each    = var.node_ids
  resource_id = each.value
  key         = "reveille:pool"
  value       = local.pool
  # AWS overwrites a tag that is there: a second apply by mistake has to end before it, or its `destroy` would take the tag, and
  # the rights with it, away from the first.
  depends_on = [module.controller]
}

module "controller" {
  source  = "../../modules/controller"
  package = var.package
  zone    = var.zone
  mail    = var.mail
  lean    = var.lean

  pools = {
    (local.pool) = {
      requests = [merge(local.requests, { alive = local.healthy })]
      open     = [merge(local.open, { alive = local.healthy })]
      ready    = local.healthy
    }
  }
  budget = { amount = var.budget_usd, currency = "USD", mail = sort(var.mail) }
  prices = var.prices

  url_callers         = var.url_callers
  watched_nodes       = var.node_ids
  volume_kms_key_arns = var.volume_kms_key_arns
}

# The nodes' load balancer is their signal: requests, open connections, and healthy hosts as the proof that it works.
locals {
  balancer = { LoadBalancer = var.load_balancer }
  requests = { namespace = "AWS/ApplicationELB", metric = "RequestCount", dimensions = local.balancer }
  open     = { namespace = "AWS/ApplicationELB", metric = "ActiveConnectionCount", dimensions = local.balancer }
  healthy  = { namespace = "AWS/ApplicationELB", metric = "HealthyHostCount", dimensions = merge(local.balancer, { TargetGroup = var.target_group }) }
}
