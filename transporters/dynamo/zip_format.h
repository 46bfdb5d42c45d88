// Numbers of the zip format (PKWARE APPNOTE 6.3.10) that the writer and the reader share.
#pragma once

#include <cstdint>

namespace transporters::dynamo::zip {

inline constexpr uint32_t kLocalHeader = 0x04034B50;
inline constexpr uint32_t kDescriptor = 0x08074B50;
inline constexpr uint32_t kDirectoryEntry = 0x02014B50;
inline constexpr uint32_t kEnd = 0x06054B50;
inline constexpr uint32_t kEnd64 = 0x06064B50;
inline constexpr uint32_t kEnd64Locator = 0x07064B50;

// Sizes without the variable parts.
inline constexpr uint64_t kLocalHeaderSize = 30;
inline constexpr uint64_t kDirectoryEntrySize = 46;
inline constexpr uint64_t kEndSize = 22;
inline constexpr uint64_t kEnd64Size = 56;
inline constexpr uint64_t kEnd64LocatorSize = 20;

inline constexpr uint16_t kZip64Field = 0x0001;  // id of the extra field
// A field of this value stands in the zip64 field instead.
inline constexpr uint64_t kUse64 = 0xFFFFFFFF;
inline constexpr uint64_t kUse64Count = 0xFFFF;

inline constexpr uint16_t kEncryptedFlag = 1 << 0;
inline constexpr uint16_t kDescriptorFlag = 1 << 3;
inline constexpr uint16_t kUtf8Flag = 1 << 11;
inline constexpr uint16_t kStored = 0;  // compression method
inline constexpr uint16_t kVersion = 20;
inline constexpr uint16_t kVersion64 = 45;
inline constexpr uint16_t kTime = 0;
inline constexpr uint16_t kDate = (0 << 9) | (1 << 5) | 1;  // 1 January 1980, the first that the format knows

}  // namespace transporters::dynamo::zip
