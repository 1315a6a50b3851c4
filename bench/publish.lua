-- Posts the given file again and again, each time with another text in place of "@@".
local before, after, run
local sent = 0

function init(args)
  local file = io.open(args[1])
  local body = file:read("*a")
  file:close()
  run = args[2]
  local first, last = body:find("@@", 1, true)
  before, after = body:sub(1, first - 1), body:sub(last + 1)
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
end

function request()
  sent = sent + 1
  return wrk.format(nil, nil, nil, before .. run .. "-" .. sent .. after)
end
