variable "region" {
  description = "Where the node stands."
  type        = string
  default     = "ap-northeast-2"
}

variable "package" {
  description = "Where `make package` put the zips."
  type        = string
  default     = "../../../target/lambda"
}

variable "zones" {
  description = "One node in each. g6 is not in ap-northeast-2b."
  type        = list(string)
  default     = ["ap-northeast-2a"]
}

variable "instance_types" {
  description = "Of the nodes, the preferred one first: they are made as it. Where EC2 has no machine of it, a node is started as the next; its compute price is that of the type it runs as."
  type        = list(string)
  default     = ["g6.xlarge", "g5.xlarge"]
  validation {
    condition     = length(var.instance_types) > 0
    error_message = "instance_types: write at least one, such as [\"g6.xlarge\"]."
  }
}

variable "ami_parameter" {
  description = "The SSM parameter that names the AMI."
  type        = string
  default     = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"
}

variable "engine_command" {
  description = "What serves calls on 127.0.0.1:$PORT and answers /health with 2xx once its model is loaded."
  type        = string
}

variable "engine_slots" {
  description = "How many of it on one node; each takes one call."
  type        = number
  default     = 4
}

variable "call_paths" {
  description = "Prefixes of the paths that are calls."
  type        = list(string)
  default     = ["/v1/"]
}

variable "front_log_group" {
  description = "The request log of something that stays up and whose lines wake the node, if any."
  type        = string
  default     = null
}

variable "peers" {
  description = "VPCs whose callers reach the node, such as staging and prod; see the node module."
  type        = any
  default     = {}
}

variable "beat" {
  description = "Where the node fetches the beat's program; null: the AMI has it."
  type        = object({ url = string, sha256 = string })
  default     = null
}

variable "budget_usd" {
  description = "The most for a month; at 100 % no wake is taken any more."
  type        = number
  default     = 200
}

variable "mail" {
  description = "Who is told."
  type        = set(string)
  default     = []
}

variable "url_callers" {
  description = "Roles that may wake the node and take leases."
  type        = set(string)
  default     = []
}

variable "lean" {
  description = "Few alarms and no dashboard."
  type        = bool
  default     = false
}
