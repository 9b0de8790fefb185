variable "region" {
  description = "Where the nodes stand."
  type        = string
}

variable "node_ids" {
  description = "The nodes' instance ids, by a name of yours."
  type        = map(string)
}

variable "load_balancer" {
  description = "The load balancer before them: its ARN, or app/NAME/HASH."
  type        = string
}

variable "target_group" {
  description = "Its target group: the ARN, or targetgroup/NAME/HASH."
  type        = string
}

variable "package" {
  description = "Where `make package` put the zips."
  type        = string
  default     = "../../../target/lambda"
}

variable "zone" {
  description = "The zone of the uptime day and of the times in messages."
  type        = string
  default     = "UTC"
}

variable "budget_usd" {
  description = "The most for a month; people are told, nothing is closed."
  type        = number
  default     = 200
}

variable "prices" {
  description = "Your own prices, needed in a region that the price table has not."
  type        = any
  default     = null
}

variable "mail" {
  description = "Who is told."
  type        = set(string)
  default     = []
}

variable "url_callers" {
  description = "Roles that may wake the nodes."
  type        = set(string)
  default     = []
}

variable "volume_kms_key_arns" {
  description = "Customer keys of the nodes' encrypted volumes."
  type        = set(string)
  default     = []
}

variable "lean" {
  description = "Few alarms and no dashboard."
  type        = bool
  default     = false
}
