/* What a C library would have, for targets that have none: memory, and as much of math.h as
 * compiled models call. A module of WebAssembly is linked with it, so that it imports nothing.
 *
 * Results are right to some units in the last place of a double; those of floats come from
 * doubles and are mostly rounded right. Speed matters less: what models call often, on floats, is
 * part of their own code. */
// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <stdint.h>

#ifndef FREESTANDING /* a test gives other names, to compare with those of its C library */
#define FREESTANDING(name) name
#endif

/* ---- memory ---- */

void *FREESTANDING(memcpy)(void *restrict to, const void *restrict from, size_t size);
void *FREESTANDING(memcpy)(void *restrict to, const void *restrict from, size_t size)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    size_t i = 0;

    if (((uintptr_t)t | (uintptr_t)f) % sizeof(uint64_t) == 0)
        for (; i + sizeof(uint64_t) <= size; i += sizeof(uint64_t))
            *(uint64_t *)(void *)(t + i) = *(const uint64_t *)(const void *)(f + i);
    for (; i < size; i++)
        t[i] = f[i];
    return to;
}

void *FREESTANDING(memmove)(void *to, const void *from, size_t size);
void *FREESTANDING(memmove)(void *to, const void *from, size_t size)
{
    unsigned char *t = to;
    const unsigned char *f = from;

    if ((uintptr_t)t - (uintptr_t)f >= size) {
        for (size_t i = 0; i < size; i++)
            t[i] = f[i];
    } else {
        for (size_t i = size; i-- > 0;)
            t[i] = f[i];
    }
    return to;
}

void *FREESTANDING(memset)(void *to, int value, size_t size);
void *FREESTANDING(memset)(void *to, int value, size_t size)
{
    unsigned char *t = to;
    const uint64_t eight = 0x0101010101010101U * (unsigned char)value;
    size_t i = 0;

    for (; i < size && (uintptr_t)(t + i) % sizeof eight != 0; i++)
        t[i] = (unsigned char)value;
    for (; i + sizeof eight <= size; i += sizeof eight)
        *(uint64_t *)(void *)(t + i) = eight;
    for (; i < size; i++)
        t[i] = (unsigned char)value;
    return to;
}

/* ---- numbers as bits ---- */

#define NAN_VALUE __builtin_nan("")
#define INF_VALUE __builtin_inf()

static uint64_t bits_of(double x)
{
    union {
        double number;
        uint64_t bits;
    } both = {x};

    return both.bits;
}

static double of_bits(uint64_t bits)
{
    union {
        uint64_t bits;
        double number;
    } both = {bits};

    return both.number;
}

static double magnitude(double x)
{
    return of_bits(bits_of(x) & INT64_MAX);
}

static int is_negative(double x)
{
    return (int)(bits_of(x) >> 63);
}

static double with_sign(double x, double sign)
{
    return of_bits((bits_of(x) & INT64_MAX) | (bits_of(sign) & ~(uint64_t)INT64_MAX));
}

/* x 2^n in steps that are exact but for the last. */
static double scaled(double x, int n)
{
    for (; n > 1023; n = n > 3069 ? 2046 : n - 1023)
        x *= 0x1p1023;
    for (; n < -969; n = n < -4000 ? -3031 : n + 969)
        x *= 0x1p-969;
    return x * of_bits((uint64_t)(n + 1023) << 52);
}

/* x = m 2^*n with m in [1, 2), for finite positive x. */
static double split(double x, int *n)
{
    int by = 0;

    if (x < 0x1p-1022) {
        x *= 0x1p54;
        by = -54;
    }
    *n = (int)(bits_of(x) >> 52) - 1023 + by;
    return of_bits((bits_of(x) & 0xfffffffffffffU) | (uint64_t)1023 << 52);
}

/* ---- rounding ---- */

/* To an integer, ties to even: adding 2^52 leaves no place for a fraction. */
static double rounded(double x)
{
    const double big = with_sign(0x1p52, x);

    return magnitude(x) < 0x1p52 ? with_sign((x + big) - big, x) : x;
}

static double lowered(double x)
{
    const double near = rounded(x);

    return near > x ? with_sign(near - 1, x) : near;
}

static double raised(double x)
{
    return -lowered(-x);
}

static double truncated(double x)
{
    return is_negative(x) ? raised(x) : lowered(x);
}

/* Ties away from zero. */
static double rounded_away(double x)
{
    const double whole = truncated(x);

    return magnitude(x - whole) >= 0.5 ? whole + with_sign(1, x) : whole;
}

/* ---- roots ---- */

/* One bit at a time, for processors that have no instruction for it: __builtin_sqrt calls it
 * there. */
static double root(double x)
{
    uint64_t rest, result = 0, twice = 0;
    int n;

    if (!(x > 0) || x == INF_VALUE)
        return x < 0 ? NAN_VALUE : x;
    rest = (bits_of(split(x, &n)) & 0xfffffffffffffU) | (uint64_t)1 << 52;
    if (n & 1) {
        rest *= 2;
        n--;
    }
    rest *= 2;
    for (uint64_t bit = (uint64_t)1 << 53; bit; bit /= 2, rest *= 2)
        if (twice + bit <= rest) {
            rest -= twice + bit;
            twice += 2 * bit;
            result += bit;
        }
    result += rest ? result & 1 : 0;
    return scaled(of_bits((result / 2) + ((uint64_t)1022 << 52)), n / 2);
}

/* ---- two doubles for one number ---- */

struct pair {
    double high, low;
};

static struct pair sum_of(double a, double b)
{
    const double sum = a + b, of_b = sum - a;

    return (struct pair){sum, (a - (sum - of_b)) + (b - of_b)};
}

static struct pair halves(double a)
{
    const double high = of_bits(bits_of(a) & 0xfffffffff8000000U);

    return (struct pair){high, a - high};
}

static struct pair product_of(double a, double b)
{
    const struct pair p = halves(a), q = halves(b);
    const double product = a * b;

    return (struct pair){product, ((p.high * q.high - product) + p.high * q.low + p.low * q.high) +
                                      p.low * q.low};
}

static struct pair pair_product(struct pair a, struct pair b)
{
    const struct pair p = product_of(a.high, b.high);

    return sum_of(p.high, p.low + (a.high * b.low + a.low * b.high));
}

static struct pair pair_sum(struct pair a, struct pair b)
{
    const struct pair s = sum_of(a.high, b.high);

    return sum_of(s.high, s.low + (a.low + b.low));
}

/* The sum, with its last bit set where it is not exact: rounding it once more does no harm. */
static double odd_sum(double a, double b)
{
    const struct pair s = sum_of(a, b);
    const uint64_t bits = bits_of(s.high);

    if (s.low == 0 || (bits & 1) || s.low != s.low)
        return s.high;
    return of_bits((s.low > 0) == (s.high > 0) ? bits + 1 : bits - 1);
}

static double multiplied_and_added(double x, double y, double z)
{
    const double rough = x * y + z;

    if (!(magnitude(rough) <= 0x1p900) || magnitude(x * y) < 0x1p-900 || magnitude(x) > 0x1p900 ||
        magnitude(y) > 0x1p900)
        return rough;
    const struct pair product = product_of(x, y), low = sum_of(z, product.low);
    const struct pair high = sum_of(product.high, low.high);

    return high.high + odd_sum(high.low, low.low);
}

/* ---- powers ---- */

#define LN2_HIGH 0x1.62e42feep-1 /* times any exponent: exact */
#define LN2_LOW  0x1.a39ef35793c76p-33

/* e^r - 1 for |r| <= ln(2) / 2: a series whose next term is under 2^-57 of it. */
static double small_power(double r)
{
    double sum = 0;

    for (int n = 14; n > 1; n--)
        sum = (sum + 1) * r / n;
    return r + r * sum;
}

/* e^(x + low) */
static double power_of_e(double x, double low)
{
    if (x != x)
        return x;
    if (x > 709.79)
        return INF_VALUE;
    if (x < -745.2)
        return 0;
    const double n = rounded(x * 1.4426950408889634);
    const double r = (x - n * LN2_HIGH) + (low - n * LN2_LOW);

    return scaled(1 + small_power(r), (int)n);
}

static double exp_(double x)
{
    return power_of_e(x, 0);
}

static double exp2_(double x)
{
    if (!(magnitude(x) < 1100))
        return x != x ? x : x > 0 ? INF_VALUE : 0;
    const double n = rounded(x);

    return scaled(1 + small_power((x - n) * 0.69314718055994531), (int)n);
}

static double expm1_(double x)
{
    if (x != x || x > 709.79 || x < -40 || magnitude(x) < 0x1p-54)
        return x != x || magnitude(x) < 0x1p-54 ? x : x > 0 ? INF_VALUE : -1;
    const double n = rounded(x * 1.4426950408889634);
    const double part = small_power((x - n * LN2_HIGH) - n * LN2_LOW);

    /* 2^n is too large for a double where n is 1024 */
    return n > 1000 ? scaled(1 + part, (int)n) : scaled(part, (int)n) + (scaled(1, (int)n) - 1);
}

/* The logarithm: x = m 2^n with m near 1, s = (m - 1) / (m + 1), and 2 (s + s^3 / 3 + ..). */
static struct pair log_pair(double x)
{
    int n;
    double m = split(x, &n);

    if (m > 1.4142135623730951) {
        m /= 2;
        n++;
    }
    const double f = m - 1;
    const struct pair sum = sum_of(m, 1);
    const double s = f / sum.high;
    const struct pair back = product_of(s, sum.high);
    const struct pair s2 = {s, (((f - back.high) - back.low) - s * sum.low) / sum.high};
    const struct pair z = pair_product(s2, s2);
    double rest = 0;

    for (int k = 27; k >= 5; k -= 2)
        rest = rest * z.high + 2.0 / k;
    const struct pair third = pair_product(
        pair_product(z, s2), (struct pair){0x1.5555555555555p-1, 0x1.5555555555555p-55});
    const struct pair part = pair_sum(third, (struct pair){rest * z.high * z.high * s, 0});
    const struct pair log_m = pair_sum((struct pair){2 * s2.high, 2 * s2.low}, part);

    return pair_sum((struct pair){n * LN2_HIGH, n * LN2_LOW}, log_m);
}

/* Is there a logarithm? *out has it where it is not a plain one. */
static int log_is_special(double x, double *out)
{
    const int special = !(x > 0) || x == INF_VALUE;

    if (special)
        *out = x == 0 ? -INF_VALUE : x < 0 ? NAN_VALUE : x;
    return special;
}

static double log_(double x)
{
    double special;

    return log_is_special(x, &special) ? special : log_pair(x).high;
}

static double log_times(double x, double factor, double factor_low)
{
    double special;

    if (log_is_special(x, &special))
        return special;
    return pair_product(log_pair(x), (struct pair){factor, factor_low}).high;
}

static double log2_(double x)
{
    return log_times(x, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56);
}

static double log10_(double x)
{
    return log_times(x, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57);
}

static double log1p_(double x)
{
    const double u = 1 + x;

    if (u == 1 || !(u > 0) || u == INF_VALUE)
        return u == 1 ? x : log_(u);
    return log_(u) + (x - (u - 1)) / u;
}

static double pow_(double x, double y)
{
    const double size = magnitude(x);
    const int whole = magnitude(y) >= 0x1p53 || truncated(y) == y;
    const int odd = whole && magnitude(y) < 0x1p53 && truncated(y / 2) != y / 2;
    double result;

    if (y == 0 || x == 1)
        return 1;
    if (x != x || y != y)
        return NAN_VALUE;
    if (magnitude(y) == INF_VALUE)
        return size == 1 ? 1 : (size > 1) == (y > 0) ? INF_VALUE : 0;
    if (size == 0 || size == INF_VALUE) {
        result = (size == 0) == (y > 0) ? 0 : INF_VALUE;
    } else if (is_negative(x) && !whole) {
        return NAN_VALUE;
    } else {
        const struct pair log = log_pair(size);

        /* no overflow in the product */
        if (magnitude(y) > 0x1p70 || magnitude(log.high * y) > 800)
            result = size == 1 ? 1 : (log.high > 0) == (y > 0) ? INF_VALUE : 0;
        else {
            const struct pair power = pair_product(log, (struct pair){y, 0});
            result = power_of_e(power.high, power.low);
        }
    }
    return odd && is_negative(x) ? -result : result;
}

/* ---- circles ---- */

/* |x| = n pi / 2 + r for large x: x is an integer of 53 bits times 2^e, of which those bits of 2 /
 * pi are taken that are neither multiples of 4 in the product nor too small to matter. */
static double turned_far(double x, int *n)
{
    static const uint32_t two_over_pi[] = {
        0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab,
        0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
        0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b,
        0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7,
        0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1,
        0x1f8d5d08, 0x56033046, 0xfc7b6bab};
    enum { WORDS = 7 };
    const uint64_t m = (bits_of(x) & 0xfffffffffffffU) | (uint64_t)1 << 52;
    const int e = (int)(bits_of(x) >> 52 & 0x7ff) - 1075;
    const int first = e > 2 ? (e - 2) / 32 : 0;
    const int point = 32 * (first + WORDS) - e; /* bits behind it */
    uint32_t product[WORDS + 2] = {0};          /* lowest first */
    double fraction = 0;

    for (int i = 0; i < WORDS; i++) {
        const uint64_t word = two_over_pi[first + WORDS - 1 - i];
        uint64_t carry = 0;
        const uint32_t parts[2] = {(uint32_t)m, (uint32_t)(m >> 32)};

        for (int k = 0; k < 2 || carry; k++) {
            carry += product[i + k] + (k < 2 ? word * parts[k] : 0);
            product[i + k] = (uint32_t)carry;
            carry >>= 32;
        }
    }
    const int at = point / 32, shift = point % 32;
    const uint64_t above = product[at] | (at + 1 < WORDS + 2 ? (uint64_t)product[at + 1] << 32 : 0);
    *n = (int)(above >> shift & 3);
    product[at] &= shift ? ((uint32_t)1 << shift) - 1 : 0;
    /* More than half a turn is less than none of the next. */
    const int half = shift ? (int)(product[at] >> (shift - 1)) : (int)(product[at - 1] >> 31);
    if (half) {
        uint64_t carry = 1;

        for (int i = 0; i <= at; i++) {
            carry += (uint32_t)~product[i];
            product[i] = (uint32_t)carry;
            carry >>= 32;
        }
        product[at] &= shift ? ((uint32_t)1 << shift) - 1 : 0;
        *n = (*n + 1) & 3;
    }
    for (int i = at; i >= 0; i--)
        fraction += scaled(product[i], 32 * i - point);
    return (half ? -fraction : fraction) * 1.5707963267948966;
}

/* pi / 2 in parts of 33 bits, so that small multiples of them are exact. */
#define PI_A 0x1.921fb54400000p+0
#define PI_B 0x1.0b4611a600000p-34
#define PI_C 0x1.3198a2e000000p-69
#define PI_D 0x1.b839a252049c1p-104

/* x = *n pi / 2 + r */
static double turned(double x, int *n)
{
    if (magnitude(x) < 0x1p19) {
        const double turns = rounded(x * 0.63661977236758134);

        *n = (int)turns & 3;
        return (((x - turns * PI_A) - turns * PI_B) - turns * PI_C) - turns * PI_D;
    }
    const double r = turned_far(magnitude(x), n);
    *n = is_negative(x) ? -*n & 3 : *n;
    return is_negative(x) ? -r : r;
}

static double small_sine(double r)
{
    const double z = r * r;
    const double p = 8.33333333332248946124e-03 +
                     z * (-1.98412698298579493134e-04 +
                          z * (2.75573137070700676789e-06 +
                               z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)));

    return r + r * z * (-1.66666666666666324348e-01 + z * p);
}

static double small_cosine(double r)
{
    const double z = r * r;
    const double p =
        4.16666666666666019037e-02 +
        z * (-1.38888888888741095749e-03 +
             z * (2.48015872894767294178e-05 +
                  z * (-2.75573143513906633035e-07 +
                       z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11))));
    const double w = 1 - z / 2;

    return w + ((1 - w) - z / 2 + z * z * p);
}

/* The sine of x + quarters pi / 2. */
static double sine(double x, int quarters)
{
    int n;

    if (!(magnitude(x) < INF_VALUE))
        return NAN_VALUE;
    if (magnitude(x) < 0x1p-27)
        return quarters ? 1 : x;
    const double r = turned(x, &n);
    n += quarters;
    const double s = n & 1 ? small_cosine(r) : small_sine(r);
    return n & 2 ? -s : s;
}

static double sin_(double x)
{
    return sine(x, 0);
}

static double cos_(double x)
{
    return sine(x, 1);
}

static double tan_(double x)
{
    return sine(x, 0) / sine(x, 1);
}

static double atan_(double x)
{
    static const double known[] = {0.4636476090008061, 0.7853981633974483, 0.9827937232473290,
                                   1.5707963267948966};
    static const double lost[] = {2.26987774529616870924e-17, 3.06161699786838301793e-17,
                                  1.39033110312309984516e-17, 6.12323399573676603587e-17};
    static const double p[] = {
        3.33333333333329318027e-01,  -1.99999999998764832476e-01, 1.42857142725034663711e-01,
        -1.11111104054623557880e-01, 9.09088713343650656196e-02,  -7.69187620504482999495e-02,
        6.66107313738753120669e-02,  -5.83357013379057348645e-02, 4.97687799461593236017e-02,
        -3.65315727442169155270e-02, 1.62858201153657823623e-02};
    const double size = magnitude(x);
    double t = size, sum = 0;
    int which = -1;

    if (x != x)
        return x;
    if (size >= 2.4375) {
        which = 3;
        t = -1 / size;
    } else if (size >= 1.1875) {
        which = 2;
        t = (size - 1.5) / (1 + 1.5 * size);
    } else if (size >= 0.6875) {
        which = 1;
        t = (size - 1) / (size + 1);
    } else if (size >= 0.4375) {
        which = 0;
        t = (2 * size - 1) / (2 + size);
    }
    for (int i = 10; i >= 0; i--)
        sum = sum * t * t + p[i];
    const double small = t - t * t * t * sum;
    return with_sign(which < 0 ? small : known[which] - ((t * t * t * sum - lost[which]) - t), x);
}

static double asin_(double x)
{
    const double rest = (1 - x) * (1 + x);

    return rest >= 0 ? with_sign(atan_(magnitude(x) / __builtin_sqrt(rest)), x) : NAN_VALUE;
}

static double acos_(double x)
{
    return magnitude(x) <= 1 ? 2 * atan_(__builtin_sqrt((1 - x) / (1 + x))) : NAN_VALUE;
}

/* ---- hyperbolas ---- */

static double sinh_(double x)
{
    const double size = magnitude(x), t = expm1_(size);

    if (size > 700)
        return with_sign(exp_(size / 2) / 2 * exp_(size / 2), x);
    return with_sign((t + t / (t + 1)) / 2, x);
}

static double cosh_(double x)
{
    const double half = exp_(magnitude(x) / 2), t = exp_(magnitude(x));

    return magnitude(x) > 700 ? half / 2 * half : t / 2 + 0.5 / t;
}

static double tanh_(double x)
{
    const double size = magnitude(x), t = expm1_(2 * size);

    return x != x ? x : with_sign(size > 22 ? 1 : t / (t + 2), x);
}

static double asinh_(double x)
{
    const double size = magnitude(x), square = size * size;

    return x != x
               ? x
               : with_sign(size > 0x1p28 ? log_(size) + 0.69314718055994531
                                         : log1p_(size + square / (1 + __builtin_sqrt(square + 1))),
                           x);
}

static double acosh_(double x)
{
    const double t = x - 1;

    return x > 0x1p28 ? log_(x) + 0.69314718055994531
           : t >= 0   ? log1p_(t + __builtin_sqrt(t * (t + 2)))
                      : NAN_VALUE;
}

static double atanh_(double x)
{
    const double size = magnitude(x);

    return size <= 1 ? with_sign(log1p_(2 * size / (1 - size)) / 2, x) : NAN_VALUE;
}

/* ---- the normal distribution ---- */

static double erfc_(double x);

/* A series whose terms have one sign, for x up to 2; what is behind it is small. */
static double erf_(double x)
{
    const double size = magnitude(x);
    const struct pair square = product_of(x, x);
    double term = 1, sum = 1;

    if (x != x)
        return x;
    if (size >= 2)
        return with_sign(size > 6 ? 1 : 1 - erfc_(size), x);
    for (int n = 1; n < 60; n++) {
        term *= 2 * x * x / (2 * n + 1);
        sum += term;
    }
    return 1.1283791670955126 * x * power_of_e(-square.high, -square.low) * sum;
}

static double erfc_(double x)
{
    const struct pair square = product_of(x, x);
    double fraction = 0;

    if (x != x || x < 1) /* not much is cancelled */
        return 1 - erf_(x);
    if (x > 28)
        return 0;
    for (int n = 400; n > 0; n--)
        fraction = n / 2.0 / (x + fraction);
    return power_of_e(-square.high, -square.low) / (x + fraction) * 0.56418958354775629;
}

/* ---- remainders ---- */

/* Exact: one bit of the quotient at a time. */
static double fmod_(double x, double y)
{
    double size = magnitude(x);
    const double by = magnitude(y);
    int of_x, of_y;

    if (!(size < INF_VALUE) || y != y || by == 0)
        return NAN_VALUE;
    if (size < by || size == 0)
        return x;
    split(size, &of_x);
    split(by, &of_y);
    for (int n = of_x - of_y; n >= 0; n--) {
        const double step = scaled(by, n);

        if (size >= step)
            size -= step;
    }
    return with_sign(size, x);
}

/* ---- the names of math.h ---- */

#define DEFINE(type, name, parameters, value)                                                      \
    type FREESTANDING(name) parameters;                                                            \
    type FREESTANDING(name) parameters                                                             \
    {                                                                                              \
        return value;                                                                              \
    }
#define OF_ONE(name, function)                                                                     \
    DEFINE(double, name, (double x), function(x))                                                  \
    DEFINE(float, name##f, (float x), (float)function((double)x))
#define OF_TWO(name, function)                                                                     \
    DEFINE(double, name, (double x, double y), function(x, y))                                     \
    DEFINE(float, name##f, (float x, float y), (float)function((double)x, (double)y))

OF_ONE(acos, acos_)
OF_ONE(acosh, acosh_)
OF_ONE(asin, asin_)
OF_ONE(asinh, asinh_)
OF_ONE(atan, atan_)
OF_ONE(atanh, atanh_)
OF_ONE(ceil, raised)
OF_ONE(cos, cos_)
OF_ONE(cosh, cosh_)
OF_ONE(erf, erf_)
OF_ONE(erfc, erfc_)
OF_ONE(exp, exp_)
OF_ONE(exp2, exp2_)
OF_ONE(expm1, expm1_)
OF_ONE(floor, lowered)
OF_ONE(log, log_)
OF_ONE(log10, log10_)
OF_ONE(log1p, log1p_)
OF_ONE(log2, log2_)
OF_ONE(nearbyint, rounded)
OF_ONE(rint, rounded)
OF_ONE(round, rounded_away)
OF_ONE(roundeven, rounded)
OF_ONE(sin, sin_)
OF_ONE(sinh, sinh_)
OF_ONE(sqrt, root)
OF_ONE(tan, tan_)
OF_ONE(tanh, tanh_)
OF_ONE(trunc, truncated)
OF_TWO(fmod, fmod_)
OF_TWO(pow, pow_)

/* Not of math.h, but LLVM calls them where Linux is. */
void FREESTANDING(sincos)(double x, double *sine_of, double *cosine_of);
void FREESTANDING(sincos)(double x, double *sine_of, double *cosine_of)
{
    *sine_of = sin_(x);
    *cosine_of = cos_(x);
}

void FREESTANDING(sincosf)(float x, float *sine_of, float *cosine_of);
void FREESTANDING(sincosf)(float x, float *sine_of, float *cosine_of)
{
    *sine_of = (float)sin_((double)x);
    *cosine_of = (float)cos_((double)x);
}

double FREESTANDING(ldexp)(double x, int n);
double FREESTANDING(ldexp)(double x, int n)
{
    return scaled(x, n);
}

float FREESTANDING(ldexpf)(float x, int n);
float FREESTANDING(ldexpf)(float x, int n)
{
    return (float)scaled((double)x, n);
}

double FREESTANDING(fma)(double x, double y, double z);
double FREESTANDING(fma)(double x, double y, double z)
{
    return multiplied_and_added(x, y, z);
}

/* The product of two floats is exact in a double. */
float FREESTANDING(fmaf)(float x, float y, float z);
float FREESTANDING(fmaf)(float x, float y, float z)
{
    return (float)odd_sum((double)x * (double)y, (double)z);
}
