-- The auctions with the most bids in the last ten seconds, every two seconds.
-- NEXMark, Query 5, as nexmark/nexmark puts it for Flink: windows of ten seconds that slide by two.
-- Heartbeats (bid.dateTime) close a window's groups, and then its rank.
-- Verdict, followed: answers when groups close, keeps what is open.

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '320m');

SELECT auction, num, window.end AS endtime
FROM (
  SELECT *, RANK() OVER (PARTITION BY window.start ORDER BY num DESC) AS place
  FROM (
    SELECT auction, COUNT(*) AS num, window FROM bid GROUP BY auction, window(dateTime, '10 seconds', '2 seconds')
  )
)
WHERE place = 1;
