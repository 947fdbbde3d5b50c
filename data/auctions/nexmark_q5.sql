-- The auctions with the most bids in the last ten seconds, every two seconds.
-- NEXMark, Query 5, as nexmark/nexmark puts it for Flink: windows of ten seconds that slide by two. Here a bid goes into
-- each of its five windows, one after the other, and a window has the second of its end.
-- Heartbeats (bid.dateTime) close a window's groups, and then its rank.
-- Verdict, followed: answers when groups close, keeps what is open.

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '32m');

WITH bid_by_window AS (
  SELECT auction, unix_seconds(dateTime) DIV 2 * 2 + 2 AS window_end FROM bid
  UNION ALL SELECT auction, unix_seconds(dateTime) DIV 2 * 2 + 4 FROM bid
  UNION ALL SELECT auction, unix_seconds(dateTime) DIV 2 * 2 + 6 FROM bid
  UNION ALL SELECT auction, unix_seconds(dateTime) DIV 2 * 2 + 8 FROM bid
  UNION ALL SELECT auction, unix_seconds(dateTime) DIV 2 * 2 + 10 FROM bid
)
SELECT auction, num, timestamp_seconds(window_end) AS endtime
FROM (
  SELECT *, RANK() OVER (PARTITION BY window_end ORDER BY num DESC) AS place
  FROM (SELECT auction, window_end, COUNT(*) AS num FROM bid_by_window GROUP BY auction, window_end)
)
WHERE place = 1;
