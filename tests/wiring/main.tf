# The controller, as wiring.py applies it to MiniStack: three pools of one node each, everything that the module can make
# but a KMS key and metric filters.

terraform {
  required_version = ">= 1.9"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.80, < 7.0"
    }
  }
}

# The address, the region and the keys are those of the environment.
provider "aws" {}

variable "package" {
  type = string
}

variable "nodes" {
  description = "Instance ids, by pool."
  type        = map(string)
}

variable "logs" {
  description = "By pool, for those that have some: the fields of a pool that name log groups."
  type        = any
}

variable "token_sha256" {
  type = string
}

locals {
  balancers = { for pool in keys(var.nodes) : pool => { LoadBalancer = "app/${pool}/0123456789abcdef" } }
  healthy   = { for pool, balancer in local.balancers : pool => { namespace = "AWS/ApplicationELB", metric = "HealthyHostCount", dimensions = balancer } }
}

module "controller" {
  source  = "../../infra/modules/controller"
  package = var.package

  pools = { for pool, balancer in local.balancers : pool => merge(
    {
      requests = [{ namespace = "AWS/ApplicationELB", metric = "RequestCount", dimensions = balancer, alive = local.healthy[pool] }]
      open     = [{ namespace = "AWS/ApplicationELB", metric = "ActiveConnectionCount", dimensions = balancer, alive = local.healthy[pool] }]
    },
    try(var.logs[pool], {}),
  ) }
  # No node is spared for being new: what keeps it has to be said by its signals.
  grace_minutes = 0

  access        = "token"
  token_sha256  = { wiring = var.token_sha256 }
  budget        = { amount = 200, currency = "USD", mail = ["ops@example.com"] }
  mail          = ["ops@example.com"]
  watched_nodes = var.nodes

  # Not the default, "?GET ?POST …": MiniStack asks that every word of a pattern occurs.
  subscription_pattern = { "*" = "POST" }
}

# What MiniStack's IAM cannot grant by the module's own policies. It knows no tags of instances. It takes a log group by its
# ARN without ":*", where AWS asks for the one with it, and AWS Budgets' actions by the names of the calls, where AWS asks
# for ViewBudget.
locals {
  gaps = {
    wake         = { actions = ["ec2:StartInstances"], resources = [for id in values(var.nodes) : "arn:aws:ec2:*:*:instance/${id}"] }
    idle-check   = { actions = ["logs:FilterLogEvents"], resources = ["arn:aws:logs:*:*:log-group:/app/*"] }
    budget-guard = { actions = ["budgets:DescribeBudget", "budgets:DescribeNotificationsForBudget"], resources = ["*"] }
  }
}

resource "aws_iam_role_policy" "gap" {
  for_each = local.gaps
  name     = "ministack"
  role     = module.controller.function_names[each.key]
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = each.value.actions, Resource = each.value.resources }]
  })
  depends_on = [module.controller]
}

output "function_url" {
  value = module.controller.function_url
}

output "failed_events_queue" {
  value = module.controller.failed_events_queue
}
