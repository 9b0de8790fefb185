# What a node does at its first boot; later ones only start what is enabled.

locals {
  port         = 8080
  first_port   = 8001
  engine_ports = [for slot in range(var.engine.slots) : local.first_port + slot]
  health       = "http://reveille_engines${var.engine.health}"

  boot_files = merge({
    "/usr/local/bin/reveille-engine" = { permissions = "0755", content = "#!/bin/sh\nexec ${var.engine.command}\n" }
    "/etc/systemd/system/reveille-engine@.service" = { permissions = "0644", content = templatefile("${path.module}/files/reveille-engine@.service.tftpl", {
      user = var.engine.user
    }) }
    "/etc/nginx/conf.d/reveille-engines.conf" = { permissions = "0644", content = templatefile("${path.module}/files/nginx-engines.conf.tftpl", {
      ports = local.engine_ports, port = local.port, health = local.health
    }) }
    "/etc/nginx/conf.d/reveille.conf" = { permissions = "0644", content = replace(file("${path.module}/files/nginx-reveille.conf"), "http://127.0.0.1:8000/health", local.health) }
    "/etc/reveille/beat.env" = { permissions = "0640", content = join("\n", [
      "REVEILLE_TABLE=${var.table_name}",
      "AWS_REGION=${local.region}",
      "REVEILLE_BEAT_READY_URL=http://127.0.0.1:8099/ready",
      "REVEILLE_BEAT_OPEN_URL=http://127.0.0.1:8099/connections",
      "REVEILLE_BEAT_LOG=/var/log/nginx/access.log",
      "REVEILLE_BEAT_LINES='${jsonencode({ paths = var.use_paths })}'",
      "",
    ]) }
    }, { for unit in ["reveille-beat.service", "reveille-beat.timer"] : "/etc/systemd/system/${unit}" => {
      permissions = "0644", content = file("${path.module}/files/${unit}")
  } })

  fetch_beat = var.beat == null ? [] : [
    "curl -fsSL --retry 5 -o /run/reveille-beat.new '${var.beat.url}'",
    "echo '${var.beat.sha256}  /run/reveille-beat.new' | sha256sum -c - && install -m 755 /run/reveille-beat.new /usr/local/bin/reveille-beat",
  ]
  boot_commands = concat(local.fetch_beat, [
    "systemctl daemon-reload",
    "systemctl enable --now ${join(" ", [for port in local.engine_ports : "reveille-engine@${port}.service"])}",
    "nginx -t && systemctl enable nginx && systemctl restart nginx",
    "systemctl enable --now reveille-beat.timer",
  ])

  # JSON is YAML, and needs no indenting.
  user_data = "#cloud-config\n${jsonencode({
    packages    = ["nginx", "curl"]
    write_files = [for path, one in local.boot_files : { path = path, owner = "root:root", permissions = one.permissions, content = one.content }]
    runcmd      = local.boot_commands
  })}\n"
}
