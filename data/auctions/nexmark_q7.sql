-- The highest bids in each period of ten seconds.
-- NEXMark, Query 7, as nexmark/nexmark puts it for Flink; there a bid at the very end of a period also counts for it.
-- Heartbeats (bid.dateTime) close a period; of an open one the highest bids are kept.
-- Verdict, followed: answers when groups close, keeps what is open.

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '320m');

SELECT auction, price, bidder, dateTime, extra
FROM (
  SELECT *, RANK() OVER (PARTITION BY window.start ORDER BY price DESC) AS place
  FROM (SELECT *, window(dateTime, '10 seconds') AS window FROM bid)
)
WHERE place = 1;
