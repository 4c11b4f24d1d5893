// IREE's recursions: iree-compile --compile-from=vm, since its passes before that do not end on a
// function that calls itself.
module {
  vm.module @recursion {
    vm.export @fib
    vm.func @fib(%n: i64) -> i64 {
      %c2 = vm.const.i64 2
      %c1 = vm.const.i64 1
      %small = vm.cmp.lt.i64.s %n, %c2 : i64
      vm.cond_br %small, ^small, ^big
    ^small:
      vm.return %n : i64
    ^big:
      %n1 = vm.sub.i64 %n, %c1 : i64
      %a = vm.call @fib(%n1) : (i64) -> i64
      %n2 = vm.sub.i64 %n, %c2 : i64
      %b = vm.call @fib(%n2) : (i64) -> i64
      %r = vm.add.i64 %a, %b : i64
      vm.return %r : i64
    }
    vm.export @down
    vm.func @down(%n: i64) -> i64 {
      %c0 = vm.const.i64 0
      %c1 = vm.const.i64 1
      %more = vm.cmp.lt.i64.s %c0, %n : i64
      vm.cond_br %more, ^more, ^zero
    ^more:
      %m = vm.sub.i64 %n, %c1 : i64
      %d = vm.call @down(%m) : (i64) -> i64
      %r = vm.add.i64 %d, %c1 : i64
      vm.return %r : i64
    ^zero:
      vm.return %n : i64
    }
  }
}
