// Elements of X where the condition holds, of Y elsewhere.
@elementwise stored
%output = arith.select %condition, %X, %Y : ${scalar(X)}
