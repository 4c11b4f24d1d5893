// IREE's rows but the recursions, in its VM's dialect: iree-compile --compile-mode=vm
vm.module @bench {
  // The cheapest of the native functions that take a tensor.
  vm.import private @hal.buffer_view.rank(%v: !vm.ref<!hal.buffer_view>) -> i32
  vm.import private @hal.buffer_view.dim(%v: !vm.ref<!hal.buffer_view>, %axis: i32) -> i64
  vm.import private @hal.buffer_view.buffer(%v: !vm.ref<!hal.buffer_view>) -> !vm.ref<!hal.buffer>
  vm.import private @hal.buffer_view.create(%b: !vm.ref<!hal.buffer>, %offset: i64, %length: i64, %type: i32, %encoding: i32, %shape: i64 ...) -> !vm.ref<!hal.buffer_view>
  vm.import private @hal.devices.get(%index: i32) -> !vm.ref<!hal.device>
  vm.import private @hal.device.allocator(%device: !vm.ref<!hal.device>) -> !vm.ref<!hal.allocator>
  vm.import private @hal.allocator.allocate(%a: !vm.ref<!hal.allocator>, %affinity: i64, %memory: i32, %usage: i32, %size: i64) -> !vm.ref<!hal.buffer>

  vm.export @packed
  vm.func @packed(%n: i64, %v: !vm.ref<!hal.buffer_view>) -> i64 {
    %c0 = vm.const.i64 0
    %c8 = vm.const.i64 8
    vm.br ^body(%n : i64)
  ^body(%i: i64):
    %r1 = vm.call @hal.buffer_view.rank(%v) : (!vm.ref<!hal.buffer_view>) -> i32
    %r2 = vm.call @hal.buffer_view.rank(%v) : (!vm.ref<!hal.buffer_view>) -> i32
    %r3 = vm.call @hal.buffer_view.rank(%v) : (!vm.ref<!hal.buffer_view>) -> i32
    %r4 = vm.call @hal.buffer_view.rank(%v) : (!vm.ref<!hal.buffer_view>) -> i32
    %r5 = vm.call @hal.buffer_view.rank(%v) : (!vm.ref<!hal.buffer_view>) -> i32
    %r6 = vm.call @hal.buffer_view.rank(%v) : (!vm.ref<!hal.buffer_view>) -> i32
    %r7 = vm.call @hal.buffer_view.rank(%v) : (!vm.ref<!hal.buffer_view>) -> i32
    %r8 = vm.call @hal.buffer_view.rank(%v) : (!vm.ref<!hal.buffer_view>) -> i32
    %j = vm.sub.i64 %i, %c8 : i64
    %more = vm.cmp.lt.i64.s %c0, %j : i64
    vm.cond_br %more, ^body(%j : i64), ^exit(%j : i64)
  ^exit(%r: i64):
    vm.return %r : i64
  }

  vm.func private @callee(%x: i64) -> i64 attributes {inlining_policy = #util.inline.never} {
    vm.return %x : i64
  }
  vm.export @call
  vm.func @call(%n: i64, %x: i64) -> i64 {
    %c0 = vm.const.i64 0
    %c8 = vm.const.i64 8
    vm.br ^body(%n, %x : i64, i64)
  ^body(%i: i64, %x0: i64):
    %x1 = vm.call @callee(%x0) : (i64) -> i64
    %x2 = vm.call @callee(%x1) : (i64) -> i64
    %x3 = vm.call @callee(%x2) : (i64) -> i64
    %x4 = vm.call @callee(%x3) : (i64) -> i64
    %x5 = vm.call @callee(%x4) : (i64) -> i64
    %x6 = vm.call @callee(%x5) : (i64) -> i64
    %x7 = vm.call @callee(%x6) : (i64) -> i64
    %x8 = vm.call @callee(%x7) : (i64) -> i64
    %j = vm.sub.i64 %i, %c8 : i64
    %more = vm.cmp.lt.i64.s %c0, %j : i64
    vm.cond_br %more, ^body(%j, %x8 : i64, i64), ^exit(%x8 : i64)
  ^exit(%r: i64):
    vm.return %r : i64
  }

  // A buffer of 4096 bytes on the heap and a view of 32 x 32 of it.
  vm.export @pool
  vm.func @pool(%n: i64) -> i64 {
    %zero = vm.const.i32 0
    %f32 = vm.const.i32 0x21000020
    %dense = vm.const.i32 1
    %memory = vm.const.i32 0x30
    %usage = vm.const.i32 0xC03
    %c0 = vm.const.i64 0
    %c1 = vm.const.i64 1
    %any = vm.const.i64 -1
    %c32 = vm.const.i64 32
    %size = vm.const.i64 4096
    %device = vm.call @hal.devices.get(%zero) : (i32) -> !vm.ref<!hal.device>
    %a = vm.call @hal.device.allocator(%device) : (!vm.ref<!hal.device>) -> !vm.ref<!hal.allocator>
    vm.br ^body(%n : i64)
  ^body(%i: i64):
    %b = vm.call @hal.allocator.allocate(%a, %any, %memory, %usage, %size) : (!vm.ref<!hal.allocator>, i64, i32, i32, i64) -> !vm.ref<!hal.buffer>
    %v = vm.call.variadic @hal.buffer_view.create(%b, %c0, %size, %f32, %dense, [%c32, %c32]) : (!vm.ref<!hal.buffer>, i64, i64, i32, i32, i64 ...) -> !vm.ref<!hal.buffer_view>
    %j = vm.sub.i64 %i, %c1 : i64
    %more = vm.cmp.lt.i64.s %c0, %j : i64
    vm.cond_br %more, ^body(%j : i64), ^exit(%j : i64)
  ^exit(%r: i64):
    vm.return %r : i64
  }

  // A shape is scalars here: reads both axes.
  vm.export @shape
  vm.func @shape(%n: i64, %v: !vm.ref<!hal.buffer_view>) -> i64 {
    %zero = vm.const.i32 0
    %one = vm.const.i32 1
    %c0 = vm.const.i64 0
    %c1 = vm.const.i64 1
    vm.br ^body(%n, %n : i64, i64)
  ^body(%i: i64, %last: i64):
    %d0 = vm.call @hal.buffer_view.dim(%v, %zero) : (!vm.ref<!hal.buffer_view>, i32) -> i64
    %d1 = vm.call @hal.buffer_view.dim(%v, %one) : (!vm.ref<!hal.buffer_view>, i32) -> i64
    %j = vm.sub.i64 %i, %c1 : i64
    %more = vm.cmp.lt.i64.s %c0, %j : i64
    vm.cond_br %more, ^body(%j, %d1 : i64, i64), ^exit(%d0 : i64)
  ^exit(%r: i64):
    vm.return %r : i64
  }

  vm.export @loop
  vm.func @loop(%n: i64) -> i64 {
    %c0 = vm.const.i64 0
    %c1 = vm.const.i64 1
    vm.br ^body(%c0 : i64)
  ^body(%i: i64):
    %j = vm.add.i64 %i, %c1 : i64
    %more = vm.cmp.lt.i64.s %j, %n : i64
    vm.cond_br %more, ^body(%j : i64), ^exit(%j : i64)
  ^exit(%r: i64):
    vm.return %r : i64
  }

  vm.export @sum
  vm.func @sum(%n: i64) -> i64 {
    %c0 = vm.const.i64 0
    %c1 = vm.const.i64 1
    vm.br ^head(%c0, %c0 : i64, i64)
  ^head(%i: i64, %s: i64):
    %more = vm.cmp.lt.i64.s %i, %n : i64
    vm.cond_br %more, ^body, ^exit
  ^body:
    %t = vm.add.i64 %s, %i : i64
    %j = vm.add.i64 %i, %c1 : i64
    vm.br ^head(%j, %t : i64, i64)
  ^exit:
    vm.return %s : i64
  }
}
