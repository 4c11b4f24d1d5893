-- Lua's rows, as JSON: nanoseconds of CPU time per operation, the median of several; the programs are
-- those of run_tenon.cc. With "depth": how deep a recursion gets.
local function median(count, f)
  local times = {}
  for i = 1, 5 do
    local start = os.clock()
    f()
    times[i] = (os.clock() - start) / count * 1e9
  end
  table.sort(times)
  return times[3]
end

local function callee(x) return x end
local function calls(n)
  local x = 1
  for _ = 1, n, 8 do
    x = callee(x)
    x = callee(x)
    x = callee(x)
    x = callee(x)
    x = callee(x)
    x = callee(x)
    x = callee(x)
    x = callee(x)
  end
end
local function loop(n)
  local i = 0
  repeat i = i + 1 until i >= n
  return i
end
local function sum(n)
  local i, s = 0, 0
  while i < n do
    s = s + i
    i = i + 1
  end
  return s
end
local function fib(n)
  if n < 2 then return n end
  return fib(n - 1) + fib(n - 2)
end
local function down(n)
  if n > 0 then return down(n - 1) + 1 end
  return n
end

if arg[1] == "depth" then
  -- The greatest depth that returns, by bisection.
  local least, most, message = 1, 1000001, "reached"
  while least + 1 < most do
    local middle = (least + most) // 2
    local fine, err = pcall(down, middle)
    if fine then least = middle else most, message = middle, err:match("stack overflow") or "error" end
  end
  print(string.format('{"depth": %d, "end": "%s"}', least, message))
  return
end

local n = 2000000
print(string.format(
  '{"version": "%s", "rows": {"call": %.3f, "loop": %.3f, "sum": %.3f, "fib": %.3f}}',
  _VERSION,
  median(n, function() calls(n) end),
  median(n, function() loop(n) end),
  median(n, function() sum(n) end),
  median(635621, function() assert(fib(27) == 196418) end)))
