// Gives `conv_sizes`: the arguments CAMEO_CONV_SIZES of kernels in C, for up to three spatial axes.
@macro batch, groups, in_channels, out_channels, in, out, kernel, strides, dilations, pads
@set ones = [1 for i in range(3 - len(kernel))]
@set conv_sizes = [batch, groups, in_channels, out_channels] + ones + in + ones + out + ones + kernel + ones + strides + ones + dilations + [0 for i in ones] + pads
@give conv_sizes
