# Who may call the URL.

mock_provider "aws" {
  source = "../../tests/mocks"
}

variables {
  package = "../../tests/package"
  budget  = { amount = 200, currency = "USD", mail = ["ops@example.com"] }
  pools = {
    voice = {
      beat       = true
      log_groups = ["/app/front"]
      wake       = { paths = ["/v1/calls"] }
    }
  }
  watched_nodes = { voice = "i-0123456789abcdef0" }
}

run "the_url_lets_in_named_roles" {
  command = plan
  variables {
    url_callers  = ["arn:aws:iam::000000000000:role/app"]
    cors_origins = ["https://app.example.com"]
  }
  assert {
    condition     = aws_lambda_function_url.wake[0].authorization_type == "AWS_IAM" && one(aws_lambda_function_url.wake[0].cors).allow_origins == toset(["https://app.example.com"])
    error_message = "Lambda verifies the caller"
  }
  assert {
    condition     = [for one in aws_lambda_permission.url : [one.action, one.principal, one.function_url_auth_type]] == [["lambda:InvokeFunctionUrl", "arn:aws:iam::000000000000:role/app", "AWS_IAM"]]
    error_message = "the first permission"
  }
  assert {
    condition = values(jsondecode(aws_cloudformation_stack.url[0].template_body).Resources)[*].Properties == [{
      FunctionName = "reveille-wake", Action = "lambda:InvokeFunction", Principal = "arn:aws:iam::000000000000:role/app", InvokedViaFunctionUrl = true
    }]
    error_message = "the second, by the URL only"
  }
}

run "an_account_is_written_as_lambda_shows_it" {
  command = plan
  variables { url_callers = ["111111111111", "arn:aws:iam::000000000000:role/app"] }
  assert {
    condition     = sort(values(aws_lambda_permission.url)[*].principal) == sort(["arn:aws:iam::000000000000:role/app", "arn:aws:iam::111111111111:root"])
    error_message = "else it would be made anew by every apply"
  }
  assert {
    condition     = sort(values(jsondecode(aws_cloudformation_stack.url[0].template_body).Resources)[*].Properties.Principal) == sort(values(aws_lambda_permission.url)[*].principal)
    error_message = "both permissions are for the same callers"
  }
}

run "the_url_with_tokens_is_open_to_all_by_the_url_only" {
  command = plan
  variables {
    access       = "token"
    token_sha256 = { app = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" }
  }
  assert {
    condition     = aws_lambda_function_url.wake[0].authorization_type == "NONE" && length(aws_lambda_function_url.wake[0].cors) == 0
    error_message = "the function verifies the caller"
  }
  assert {
    condition     = [for one in aws_lambda_permission.url : [one.action, one.principal, one.function_url_auth_type]] == [["lambda:InvokeFunctionUrl", "*", "NONE"]]
    error_message = "the first permission"
  }
  assert {
    condition     = values(jsondecode(aws_cloudformation_stack.url[0].template_body).Resources)[*].Properties == [{ FunctionName = "reveille-wake", Action = "lambda:InvokeFunction", Principal = "*", InvokedViaFunctionUrl = true }]
    error_message = "the second, by the URL only: else everybody could call the function itself"
  }
  assert {
    condition     = length([for one in concat(values(aws_lambda_permission.url), values(aws_lambda_permission.schedule)) : one if one.principal == "*" && one.action == "lambda:InvokeFunction"]) == 0
    error_message = "nobody but the URL may call for everybody"
  }
}

run "no_url" {
  command = plan
  variables { function_url = false }
  assert {
    condition     = length(aws_lambda_function_url.wake) + length(aws_lambda_permission.url) + length(aws_cloudformation_stack.url) == 0
    error_message = "no URL, no permission"
  }
}
