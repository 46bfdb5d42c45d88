// The CRC-32 of zip files (polynomial 0x04C11DB7, reflected), fast enough that it disappears behind the disk.
#pragma once

#include <cstddef>
#include <cstdint>

namespace transporters::dynamo {

// Continues `crc`, the value for the bytes before; 0 at the start.
uint32_t crc32(uint32_t crc, const void* data, size_t size);

// The same by table look-up, for processors without carry-less multiplication.
uint32_t crc32_portable(uint32_t crc, const void* data, size_t size);

}  // namespace transporters::dynamo
