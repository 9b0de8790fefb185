# As in the controller's settings.tf; each says what it is there.
variable "pools" { type = any }
variable "default_pool" {
  type    = string
  default = null
}
variable "access" {
  type    = string
  default = "iam"
}
variable "token_sha256" {
  type    = any
  default = null
}
variable "budget" {
  type    = any
  default = null
}
variable "prices" {
  type    = any
  default = null
}
variable "minutes" {
  type    = object({ tick = number, idle = number, prewarm = number, ready = number })
  default = { tick = 5, idle = 30, prewarm = null, ready = 10 }
}
variable "boot_seconds" {
  type    = number
  default = 60
}
variable "own_log_groups" {
  type    = list(string)
  default = []
}
variable "node_log_groups" {
  type    = set(string)
  default = []
}
variable "region" {
  type    = string
  default = null
}
