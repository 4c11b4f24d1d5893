// Zip archives (PKWARE's APPNOTE, 6.3) as NumPy's .npz files need them: stored and deflated
// members, with and without zip64.
//
//   [local header, name, extra, data] ... [central directory: an entry per member]
//   [zip64 end of central directory, and its locator] [end of central directory, comment]
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::tool::zip {

// What the records begin with, and their sizes without names, extra fields and comments.
inline constexpr uint32_t kLocalHeader = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50,
                          kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
inline constexpr size_t kLocalHeaderBytes = 30, kEntryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                        kLocator64Bytes = 20;

inline constexpr uint64_t kIn64 = 0xffffffff;   // a field whose value stands in the zip64 extra
inline constexpr uint64_t kCountIn64 = 0xffff;  // a number of members that stands there
inline constexpr uint16_t kExtra64 = 1;         // the identifier of that extra field
inline constexpr uint16_t kStored = 0, kDeflated = 8;  // methods
inline constexpr uint16_t kEncryptedFlag = 1, kUtf8Flag = 0x800;

}  // namespace tenon::tool::zip
