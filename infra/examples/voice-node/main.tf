# A GPU node for voice calls in its own VPC and its own state, and the controller that wakes and stops it.

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
  pool = "voice"
}

module "controller" {
  source  = "../../modules/controller"
  package = var.package
  zone    = "Asia/Seoul"
  mail    = var.mail
  lean    = var.lean

  pools = {
    (local.pool) = {
      beat           = true
      calls          = "leased"
      calls_per_node = var.engine_slots
      instance_types = length(var.instance_types) > 1 ? var.instance_types : []
      log_groups     = var.front_log_group == null ? [] : [var.front_log_group]
      wake           = var.front_log_group == null ? null : { paths = var.call_paths }
    }
  }
  budget = { amount = var.budget_usd, currency = "USD", enforce = "gate", mail = sort(var.mail) }

  url_callers         = var.url_callers
  watched_nodes       = module.node.instance_ids
  volume_kms_key_arns = module.node.volume_kms_key_arns
}

module "node" {
  source        = "../../modules/node"
  name          = "voice"
  pool          = local.pool
  table_name    = module.controller.table_name
  ami_parameter = var.ami_parameter
  nodes         = { for n, zone in var.zones : tostring(n + 1) => { zone = zone, instance_type = var.instance_types[0] } }
  engine        = { command = var.engine_command, slots = var.engine_slots }
  use_paths     = var.call_paths
  peers         = var.peers
  beat          = var.beat
}
