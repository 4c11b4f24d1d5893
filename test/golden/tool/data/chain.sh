# A program of 30,000 operators, each on the result of the one before.
awk 'BEGIN {
  print "fn @main(%x: tensor[4; f32]) -> tensor[4; f32] {"
  print "  %v0 = add(%x, %x)"
  for (i = 1; i < 30000; ++i) print "  %v" i " = mul(%v" i - 1 ", %x)"
  print "  %v" i - 1
  print "}"
}'
