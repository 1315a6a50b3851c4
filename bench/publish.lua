-- Posts the given file again and again, with another text in place of each "@@" it may have, and 1 and -1 in turn in
-- place of "±1". With a file of API keys, each call has the next one's, or, with several threads, each thread its own.
local threads = 0
local parts, run
local keys = {}
local sent = 0

function setup(thread)
  thread:set("number", threads)
  threads = threads + 1
end

function init(args)
  local file = io.open(args[1])
  parts = file:read("*a")
  file:close()
  run = args[2]
  if args[3] then
    for key in io.lines(args[3]) do keys[#keys + 1] = "Bearer " .. key end
    if args[4] == "own" then keys = { keys[number % #keys + 1] } end
  end
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
end

function request()
  local turn = #keys == 0 and 0 or math.floor(sent / #keys)
  if #keys > 0 then wrk.headers["Authorization"] = keys[sent % #keys + 1] end
  sent = sent + 1
  local body = parts:gsub("@@", run .. "-" .. number .. "-" .. sent):gsub("±1", turn % 2 == 0 and "1" or "-1")
  return wrk.format(nil, nil, nil, body)
end
