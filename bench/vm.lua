-- The rows of bench/vm.cc that Lua has too, in nanoseconds of CPU time, best of several:
--   lua5.4 bench/vm.lua
local function best(count, f)
  local least = math.huge
  for _ = 1, 7 do
    local start = os.clock()
    f()
    least = math.min(least, (os.clock() - start) / count * 1e9)
  end
  return least
end

local function empty(x) return x end
local function call(n) for _ = 1, n do empty(1) end end
local function loop(n)
  local i, sum = 0, 0
  while i < n do
    sum = sum + i
    i = i + 1
  end
  return sum
end
local function fib(n)
  if n < 2 then return n end
  return fib(n - 1) + fib(n - 2)
end

local n = 3000000
print(string.format("%-50s %8.1f ns", "Lua: call and return, with the loop around it", best(n, function() call(n) end)))
print(string.format("%-50s %8.1f ns", "Lua: loop iteration: add, compare, branch", best(n, function() loop(n) end)))
print(string.format("%-50s %8.1f ns", "Lua: fib, per call", best(1664079, function() fib(29) end)))
