locals {
  # A query over the functions' own lines (shared/src/telemetry.rs); `generation` marks a decision, `event` an effect.
  log_tables = [
    {
      title = "Why is it on, since when, when will it stop"
      of    = ["idle-check"]
      query = "filter ispresent(generation) and ispresent(node) | stats latest(inputs.state) as state, latest(reason) as why, latest(inputs.launched_at) as on_since, latest(inputs.last_use_at) as last_use, latest(stops_not_before) as stops_not_before, latest(inputs.held_until) as held_until by pool, node"
    },
    {
      title = "What did it cost: USD a day (UTC), of all pools, by the own estimate"
      of    = ["budget-guard"]
      query = "filter ispresent(inputs.own_estimate) | stats max(inputs.own_estimate) - min(inputs.own_estimate) as usd, latest(inputs.own_estimate) as month_so_far, latest(inputs.amount) as month_amount by bin(1d) as day | sort day desc"
    },
    {
      title = "Hours up in the day of ${var.zone}"
      of    = ["uptime-alarm"]
      query = "filter ispresent(inputs.seconds) | stats max(inputs.seconds) / 3600 as hours by inputs.day as day, node | sort day desc"
    },
    {
      title = "What happened: wakes, starts, stops, alerts"
      of    = ["wake", "idle-check", "budget-guard"]
      query = "filter ispresent(event) | fields @timestamp, event, pool, node, reason | sort @timestamp desc | limit 40"
    },
  ]
  log_widgets = [for n, table in local.log_tables : {
    type = "log", x = n % 2 * 12, y = 6 + floor(n / 2) * 6, width = 12, height = 6
    properties = {
      title = table.title, region = local.region, view = "table"
      query = join(" | ", concat([for key in table.of : "SOURCE '/aws/lambda/${local.function_names[key]}'"], [table.query]))
    }
  }]
  metric_widgets = [
    {
      title   = "Minutes up in each hour", period = 3600, stat = "SampleCount"
      metrics = [for name, id in var.watched_nodes : ["AWS/EC2", "StatusCheckFailed", "InstanceId", id, { label = name }]]
    },
    {
      title   = "Starts and stops", period = 3600, stat = "Sum"
      metrics = [for metric in ["Starts", "Stops", "StartFailures", "StopFailures"] : [local.namespace, metric]]
    },
    {
      title   = "Failed runs of the functions", period = 900, stat = "Sum"
      metrics = [for name in values(local.function_names) : ["AWS/Lambda", "Errors", "FunctionName", name]]
    },
  ]
  alarms = concat(
    [aws_cloudwatch_metric_alarm.no_tick.arn],
    [for alarm in aws_cloudwatch_metric_alarm.uptime : alarm.arn],
    [for alarm in aws_cloudwatch_metric_alarm.errors : alarm.arn],
    aws_cloudwatch_metric_alarm.failed_events[*].arn,
  )
}

resource "aws_cloudwatch_dashboard" "nodes" {
  count          = var.lean ? 0 : 1
  dashboard_name = var.name
  dashboard_body = jsonencode({
    start = "-PT24H"
    widgets = concat(
      [{
        type       = "alarm", x = 0, y = 0, width = 6, height = 6
        properties = { title = "Alarms", alarms = local.alarms }
      }],
      # One without a metric is refused.
      [for n, widget in [for widget in local.metric_widgets : widget if length(widget.metrics) > 0] : {
        type       = "metric", x = 6 + n * 6, y = 0, width = 6, height = 6
        properties = merge(widget, { region = local.region, view = "timeSeries" })
      }],
      local.log_widgets,
    )
  })
}
