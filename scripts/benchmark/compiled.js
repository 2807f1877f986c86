// What node compiles as it runs.
//
// SPDX-License-Identifier: GPL-2.0-or-later

function fib(n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

const sums = new Array(1000).fill(0);
for (let i = 1; i <= 50000000; i++) {
    sums[i % 1000] += i * 7 % 13;
}
console.log(sums.reduce((a, b) => a + b), fib(32));
