-- What LuaJIT compiles as it runs.
--
-- SPDX-License-Identifier: GPL-2.0-or-later

local function fib(n)
    if n < 2 then
        return n
    end
    return fib(n - 1) + fib(n - 2)
end

local sums, total = {}, 0
for i = 0, 999 do
    sums[i] = 0
end
for i = 1, 50000000 do
    sums[i % 1000] = sums[i % 1000] + i * 7 % 13
end
for i = 0, 999 do
    total = total + sums[i]
end
print(total, fib(32))
