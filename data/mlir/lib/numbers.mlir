// Gives `numbers`: the sizes of x, each a number where it is known and else the name of an index.
@macro x
@set numbers = [known(dim(x, i)) ? dim(x, i) : size(x, i) for i in range(rank(x))]
@give numbers
