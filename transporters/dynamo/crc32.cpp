#include "transporters/dynamo/crc32.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace transporters::dynamo {
namespace {

constexpr uint32_t kPolynomial = 0xEDB88320;  // bit-reflected
constexpr size_t kSlices = 8;
using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

// tables[k][b]: what byte b contributes when k more bytes follow it in the same step.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][b] = crc;
  }
  for (size_t k = 1; k < kSlices; ++k)
    for (uint32_t b = 0; b < 256; ++b) tables[k][b] = (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 0xFF];
  return tables;
}

constexpr Tables kTables = make_tables();

// Works on the inverted register.
uint32_t update_by_table(uint32_t crc, const unsigned char* p, size_t size) {
  static_assert(std::endian::native == std::endian::little);
  for (; size >= kSlices; p += kSlices, size -= kSlices) {
    uint32_t low, high;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + 4, 4);
    low ^= crc;
    crc = kTables[7][low & 0xFF] ^ kTables[6][(low >> 8) & 0xFF] ^ kTables[5][(low >> 16) & 0xFF] ^
          kTables[4][low >> 24] ^ kTables[3][high & 0xFF] ^ kTables[2][(high >> 8) & 0xFF] ^
          kTables[1][(high >> 16) & 0xFF] ^ kTables[0][high >> 24];
  }
  for (; size > 0; ++p, --size) crc = (crc >> 8) ^ kTables[0][(crc ^ *p) & 0xFF];
  return crc;
}

#if defined(__x86_64__)
// Folding by carry-less multiplication, after Gopal et al., "Fast CRC Computation for Generic Polynomials Using
// PCLMULQDQ Instruction" (Intel, 2009). Constants are x^n mod P, reflected, for the fold distances used below.
constexpr size_t kFoldMinimum = 64;

__attribute__((target("pclmul,sse4.1"))) inline __m128i fold(__m128i value, __m128i factors, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(value, factors, 0x00);
  const __m128i high = _mm_clmulepi64_si128(value, factors, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// `size` is a multiple of 16 and at least kFoldMinimum; works on the inverted register.
__attribute__((target("pclmul,sse4.1"))) uint32_t update_by_folding(uint32_t crc, const unsigned char* p, size_t size) {
  const __m128i by_512 = _mm_set_epi64x(0x1C6E41596, 0x154442BD4);
  const __m128i by_128 = _mm_set_epi64x(0x0CCAA009E, 0x1751997D0);
  const __m128i by_64 = _mm_set_epi64x(0, 0x163CD6124);
  const __m128i barrett = _mm_set_epi64x(0x1F7011641, 0x1DB710641);
  const __m128i low_32 = _mm_set_epi32(0, -1, 0, -1);
  const auto load = [](const unsigned char* at) __attribute__((target("pclmul,sse4.1"))) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  };

  __m128i a = _mm_xor_si128(load(p), _mm_cvtsi32_si128(static_cast<int>(crc)));
  __m128i b = load(p + 16), c = load(p + 32), d = load(p + 48);
  for (p += 64, size -= 64; size >= 64; p += 64, size -= 64) {
    a = fold(a, by_512, load(p));
    b = fold(b, by_512, load(p + 16));
    c = fold(c, by_512, load(p + 32));
    d = fold(d, by_512, load(p + 48));
  }
  a = fold(a, by_128, b);
  a = fold(a, by_128, c);
  a = fold(a, by_128, d);
  for (; size >= 16; p += 16, size -= 16) a = fold(a, by_128, load(p));

  // 128 bits to 64, to 32 and Barrett's reduction.
  a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, by_128, 0x10));
  a = _mm_xor_si128(_mm_srli_si128(a, 4), _mm_clmulepi64_si128(_mm_and_si128(a, low_32), by_64, 0x00));
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(a, low_32), barrett, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_32), barrett, 0x00);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(a, quotient), 1));
}
#endif

}  // namespace

uint32_t crc32_portable(uint32_t crc, const void* data, size_t size) {
  return ~update_by_table(~crc, static_cast<const unsigned char*>(data), size);
}

uint32_t crc32(uint32_t crc, const void* data, size_t size) {
#if defined(__x86_64__)
  static const bool can_fold = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  if (can_fold && size >= kFoldMinimum) {
    const auto* p = static_cast<const unsigned char*>(data);
    const size_t folded = size & ~size_t{15};
    return ~update_by_table(update_by_folding(~crc, p, folded), p + folded, size - folded);
  }
#endif
  return crc32_portable(crc, data, size);
}

}  // namespace transporters::dynamo
