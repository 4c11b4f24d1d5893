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

local function numbers(n)
  local xs = nil
  for i = n, 1, -1 do xs = {first = i, rest = xs} end
  return xs
end
local function plus(a, b) return a + b end
local function list_fold(n, f, xs)
  local sum = 0
  for _ = 1, n do
    local cell = xs
    while cell do
      sum = f(sum, cell.first)
      cell = cell.rest
    end
  end
  return sum
end
local function adder(k)
  return function(x) return x + k end
end
local function closure(n, f)
  local x = 0
  for _ = 1, n, 8 do
    x = f(x)
    x = f(x)
    x = f(x)
    x = f(x)
    x = f(x)
    x = f(x)
    x = f(x)
    x = f(x)
  end
  return x
end
local ADD, SUBTRACT, FROM, LEAST, MOST, AND, OR, HALT = 0, 1, 2, 3, 4, 5, 6, 7
local function code(n)
  local c = {tag = HALT}
  local cycle = {{ADD, 5}, {MOST, -60}, {OR, 9}, {SUBTRACT, 3}, {AND, -5}, {LEAST, 70}, {FROM, 20}}
  for i = 0, n - 1 do
    local operation = cycle[i % 7 + 1]
    c = {tag = operation[1], k = operation[2], rest = c}
  end
  return c
end
-- Without a match, the quickest way to choose is a tree of comparisons.
local function step(x, c)
  while true do
    local tag, k = c.tag, c.k
    if tag < FROM then
      if tag == ADD then x = x + k else x = x - k end
    elseif tag < MOST then
      if tag == FROM then x = k - x elseif k < x then x = k end
    elseif tag < OR then
      if tag == AND then x = x & k elseif k > x then x = k end
    elseif tag == OR then x = x | k
    else return x end
    c = c.rest
  end
end
local function match8(n, c)
  local x = 0
  for _ = 1, n do x = step(x, c) end
  return x
end
local function f64_loop(most, re, im)
  local i, x, y = 0, 0.0, 0.0
  while x * x + y * y <= 4.0 and i < most do
    local d = x * x - y * y
    local xy = x * y
    x = d + re
    y = xy + xy + im
    i = i + 1
  end
  return i
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

local n, cells, walks = 2000000, 1001, 1999
local xs, program, add3 = numbers(cells), code(cells), adder(3)
local rows = {
  {"call", n, function() calls(n) end},
  {"loop", n, function() loop(n) end},
  {"sum", n, function() sum(n) end},
  {"fib", 635621, function() assert(fib(27) == 196418) end},
  {"list_fold", walks * cells, function() assert(list_fold(walks, plus, xs) == walks * 501501) end},
  {"closure", n, function() assert(closure(n, add3) == 3 * n) end},
  {"match8", walks * cells, function() assert(match8(walks, program) == 18) end},
  {"f64_loop", n, function() assert(f64_loop(n, -0.5, 0.25) == n) end},
}
for i, row in ipairs(rows) do
  rows[i] = string.format('"%s": %.3f', row[1], median(row[2], row[3]))
end
print(string.format('{"version": "%s", "rows": {%s}}', _VERSION, table.concat(rows, ", ")))
