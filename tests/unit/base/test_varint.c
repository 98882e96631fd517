/* Variable-length numbers: there and back, and bytes that are none. */
// SPDX-License-Identifier: Apache-2.0
#include "base/varint.h"
#include "check.h"

void test_varint__come_back_as_they_were(void)
{
    static const struct {
        uint64_t value;
        size_t size;
    } numbers[] = {{0, 1},
                   {127, 1},
                   {128, 2},
                   {16383, 2},
                   {16384, 3},
                   {UINT32_MAX, 5},
                   {(UINT64_C(1) << 63) - 1, 9},
                   {UINT64_MAX, CM_VARINT_MAX}};

    for (size_t i = 0; i < CM_COUNT(numbers); i++) {
        uint8_t bytes[CM_VARINT_MAX + 1];
        const uint8_t *at = bytes;
        uint64_t value = 0;
        const size_t size = cm_varint_put(bytes, numbers[i].value);

        CHECK_INT(size, numbers[i].size);
        CHECK_INT(cm_varint_size(numbers[i].value), size);
        CHECK_INT(cm_varint_get(&at, bytes + sizeof bytes, &value), CM_VARINT_OK);
        CHECK(value == numbers[i].value);
        CHECK(at == bytes + size);
        for (size_t cut = 0; cut < size; cut++) {
            at = bytes;
            CHECK_INT(cm_varint_get(&at, bytes + cut, &value), CM_VARINT_CUT);
        }
    }
}

void test_varint__of_more_than_ten_bytes_are_refused(void)
{
    static const uint8_t last[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f};
    static const uint8_t more[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                   0x80, 0x80, 0x80, 0x80, 0x01};
    const uint8_t *at = last;
    uint64_t value = 0;

    CHECK_INT(cm_varint_get(&at, last + sizeof last, &value), CM_VARINT_OK);
    CHECK(value == UINT64_C(1) << 63); /* bits past the 64th are dropped */
    at = more;
    CHECK_INT(cm_varint_get(&at, more + sizeof more, &value), CM_VARINT_LONG);
}
