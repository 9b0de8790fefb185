# The controller with everything that the examples leave out, as a root of one's own would have it.

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
  region      = var.region
  max_retries = 5
}

variable "region" {
  type = string
}

variable "package" {
  type = string
}

module "controller" {
  source  = "../../../infra/modules/controller"
  name    = "full"
  package = var.package
  tags    = { team = "voice" }

  pools = {
    voice = {
      beat       = true
      log_groups = ["/app/front", "/app/gateway"]
      wake       = { paths = ["/v1/calls"] }
      logs       = [{ group = "/node/nginx", lines = { paths = ["/v1/calls"] } }]
    }
  }
  budget               = { amount = 200, currency = "USD", name = "full", mail = ["ops@example.com"] }
  node_log_groups      = ["/node/nginx"]
  subscription_pattern = { "*" = "?GET", "/app/gateway" = "" }
  request_metrics      = { VoiceRequests = { log_group = "/node/nginx", pattern = "\"POST /v1/calls\"" } }

  access               = "token"
  token_sha256         = { app = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" }
  cors_origins         = ["https://app.example.com"]
  reserved_concurrency = 2
  encrypt_topic        = true
  mail                 = ["ops@example.com", "other@example.com"]
}
